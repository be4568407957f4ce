"""How clients reach Kafka: one producer and readers with the same connection, failures as BrokerError."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from light_scheduler.connection import Connection, KafkaSecurity
from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.wire import partition_for

from .lasting_logins import keep_logged_in

HEARTBEAT_S = 0.3
"""Members learn of a rebalance with a heartbeat: this bounds how long a partition pauses when a worker leaves."""

NEVER_MS = 2**31 - 1
"""`max.poll.interval.ms` of members: one that fetches nothing for that long leaves its group, and does not come back
before it fetches, which one without partitions never does."""

MAX_REQUEST_BYTES = 1_048_576
_BATCH_BYTES = 262_144
_CLOSE_TIMEOUT_S = 5.0
_DENIED = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)


def connection_of(servers: str | Sequence[str] | Connection, security: KafkaSecurity) -> Connection:
    """Return the connection to servers, which may begin with `kafka://`; a connection is returned as it is."""
    if isinstance(servers, Connection):
        return servers
    text = servers if isinstance(servers, str) else ",".join(servers)
    return Connection(text.removeprefix("kafka://"), security)


@contextmanager
def broker_errors(doing: str) -> Iterator[None]:
    """Raise what goes wrong between this client and the broker as BrokerError that says what was being done."""
    try:
        yield
    except MessageSizeTooLargeError as error:
        raise InvalidCommand("payload", f"is too large for a record: {error}") from error
    except TimeoutError as error:
        raise BrokerError(f"{doing}: the broker did not answer in time") from error
    except _DENIED as error:
        raise BrokerError(f"{doing}: {denial(error)}") from error
    except (KafkaError, OSError) as error:
        raise BrokerError(f"{doing}: {error or type(error).__name__}") from error


@contextmanager
def option_errors() -> Iterator[None]:
    """Raise what aiokafka says of the value of an option as InvalidCommand. To be used where a client of it is made."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidCommand("kafka_options", f"has a value that aiokafka refuses: {error}") from error


def denial(error: KafkaError) -> str:
    """Say which right is missing, of an error for which one is."""
    if isinstance(error, ClusterAuthorizationFailedError):
        what = "to write to any topic"  # what an idempotent producer needs to begin with
    elif isinstance(error, TopicAuthorizationFailedError):
        what = f"on topic {', '.join(sorted(map(str, _names(error))))}"
    else:
        what = f"({type(error).__name__})"
    return f"this user has no right {what}; docs/security.md lists the rights to give"


def _names(error: KafkaError) -> Iterable[object]:
    """Return the topics of an error: aiokafka gives one by its name, several in a set."""
    found = error.args[0] if error.args else ()
    return [found] if isinstance(found, str) else found


async def started_producer(options: Mapping[str, Any], max_request_bytes: int = MAX_REQUEST_BYTES) -> AIOKafkaProducer:
    """Return a connected producer: idempotent, all acknowledgements, Kafka's own partitioner.

    `options` are those of the connection, as aiokafka takes them. Raises as `broker_errors` and `option_errors` do.
    """
    with option_errors():
        producer = AIOKafkaProducer(
            acks="all",
            enable_idempotence=True,
            max_batch_size=_BATCH_BYTES,
            max_request_size=max_request_bytes,
            partitioner=_partitioner,
            **options,
        )
    keep_logged_in(producer.client)
    try:
        await producer.start()
    except BaseException:
        await stop_producer(producer)
        raise
    return producer


async def partitions_of(producer: AIOKafkaProducer, topic: str, timeout_s: float) -> set[int]:
    """Return the partitions of a topic. Raises BrokerError if it is not there, and KafkaError if it may not be seen."""
    try:
        async with asyncio.timeout(timeout_s):
            return set(await producer.partitions_for(topic))
    except TimeoutError:
        raise BrokerError(f"topic {topic} does not exist or cannot be looked up") from None


async def stop_producer(producer: AIOKafkaProducer) -> None:
    """Send what is pending and let go of every connection, within some seconds even if the broker is gone.

    Also if whoever waits for that is cancelled meanwhile.
    """
    await _to_the_end(_stop_producer(producer))


async def _stop_producer(producer: AIOKafkaProducer) -> None:
    if await ended(producer.flush()):
        await ended(producer.stop())
        return
    # An idempotent producer tries for ever, and its `stop` waits for that. What is pending is given up, as in a crash.
    producer._closed = True
    await ended(producer._sender.close())
    await ended(producer.client.close())


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Let go of every connection, within some seconds even if the broker is gone.

    Also if whoever waits for that is cancelled meanwhile.
    """
    await _to_the_end(_stop_consumer(consumer))


async def _stop_consumer(consumer: AIOKafkaConsumer) -> None:
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
    """Return whether a close came to its end, in a bounded time.

    It runs as a task of its own, because aiokafka lets the cancellation of its inner tasks out as if it were ours.
    """
    task = asyncio.create_task(closing)
    done, _ = await asyncio.wait([task], timeout=_CLOSE_TIMEOUT_S)
    if not done:
        task.cancel()
        await asyncio.wait([task])
    return not task.cancelled() and task.exception() is None


async def _to_the_end(closing: Coroutine[Any, Any, None]) -> None:
    """Wait for a close, and let a cancellation out only when that is over."""
    task = asyncio.create_task(closing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _partitioner(key: bytes, partitions: list[int], _available: list[int]) -> int:
    return partition_for(key, len(partitions))
