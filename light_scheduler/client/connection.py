"""How clients reach Kafka: one producer and readers with the same connection, failures as BrokerError."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.wire import partition_for

MAX_REQUEST_BYTES = 1_048_576
_BATCH_BYTES = 262_144
_CLOSE_TIMEOUT_S = 5.0


def bootstrap_of(servers: str | Sequence[str]) -> str:
    """Return servers as Kafka clients take them: `host:port,host:port`, without `kafka://`."""
    text = servers if isinstance(servers, str) else ",".join(servers)
    return text.removeprefix("kafka://")


@contextmanager
def broker_errors(doing: str) -> Iterator[None]:
    """Raise what goes wrong between this client and the broker as BrokerError that says what was being done."""
    try:
        yield
    except MessageSizeTooLargeError as error:
        raise InvalidCommand("payload", f"is too large for a record: {error}") from error
    except TimeoutError as error:
        raise BrokerError(f"{doing}: the broker did not answer in time") from error
    except (KafkaError, OSError) as error:
        raise BrokerError(f"{doing}: {error or type(error).__name__}") from error


async def started_producer(options: Mapping[str, Any], max_request_bytes: int = MAX_REQUEST_BYTES) -> AIOKafkaProducer:
    """Return a connected producer: idempotent, all acknowledgements, Kafka's own partitioner.

    `options` are those of the connection, as aiokafka takes them. Raises as `broker_errors` does.
    """
    producer = AIOKafkaProducer(
        acks="all",
        enable_idempotence=True,
        max_batch_size=_BATCH_BYTES,
        max_request_size=max_request_bytes,
        partitioner=_partitioner,
        **options,
    )
    try:
        await producer.start()
    except BaseException:
        await stop_producer(producer)
        raise
    return producer


async def stop_producer(producer: AIOKafkaProducer) -> None:
    """Send what is pending and let go of every connection, within some seconds even if the broker is gone."""
    if await ended(producer.flush()):
        await ended(producer.stop())
        return
    # An idempotent producer tries for ever, and its `stop` waits for that. What is pending is given up, as in a crash.
    producer._closed = True
    await ended(producer._sender.close())
    await ended(producer.client.close())


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Let go of every connection, within some seconds even if the broker is gone."""
    await end_fetches(consumer)
    if not await ended(consumer.stop()):
        await ended(consumer._client.close())


async def end_fetches(consumer: AIOKafkaConsumer) -> None:
    """Cancel what a consumer fetches; to be called before its `stop`.

    That of aiokafka 0.14 trips over the first fetch that waits for a lost broker: it lets the cancellation out as if it
    were its caller's, and leaves the rest as it is.
    """
    if (fetcher := consumer._fetcher) is not None:
        tasks = {fetcher._fetch_task, *fetcher._pending_tasks}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CLOSE_TIMEOUT_S)
        fetcher._pending_tasks.clear()


async def ended(closing: Coroutine[Any, Any, None]) -> bool:
    """Tell whether a close came to its end, in a bounded time.

    It runs as a task of its own, because aiokafka lets the cancellation of its inner tasks out as if it were ours.
    """
    task = asyncio.create_task(closing)
    done, _ = await asyncio.wait([task], timeout=_CLOSE_TIMEOUT_S)
    if not done:
        task.cancel()
        await asyncio.wait([task])
    return not task.cancelled() and task.exception() is None


def _partitioner(key: bytes, partitions: list[int], _available: list[int]) -> int:
    return partition_for(key, len(partitions))
