"""Connects clients to Kafka: starts and stops producers and consumers, and converts their errors to BrokerError."""

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
"""Members learn of a rebalance with a heartbeat, so this limits how long a partition pauses when a worker leaves."""

NEVER_MS = 2**31 - 1
"""`max.poll.interval.ms` of members. A member that fetches nothing for that long leaves its group until its next fetch,
and a member without partitions never fetches.
"""

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
    """Return the connection to servers, which may begin with `kafka://`. A connection is returned unchanged."""
    if isinstance(servers, Connection):
        return servers
    text = servers if isinstance(servers, str) else ",".join(servers)
    return Connection(text.removeprefix("kafka://"), security)


@contextmanager
def broker_errors(doing: str) -> Iterator[None]:
    """Convert errors between this client and the broker to BrokerError. `doing` begins the message."""
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
    """Convert aiokafka's errors about values of options to InvalidCommand. Use this where its clients are created."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidCommand("kafka_options", f"has a value that aiokafka refuses: {error}") from error


def denial(error: KafkaError) -> str:
    """Describe the missing right of an authorization error."""
    if isinstance(error, ClusterAuthorizationFailedError):
        what = "to write to any topic"  # an idempotent producer needs that to start
    elif isinstance(error, TopicAuthorizationFailedError):
        what = f"on topic {', '.join(sorted(map(str, _names(error))))}"
    else:
        what = f"({type(error).__name__})"
    return f"this user has no right {what}; docs/security.md lists the rights to give"


def _names(error: KafkaError) -> Iterable[object]:
    """Return the topics of an error. aiokafka passes one topic as a name, several in a set."""
    found = error.args[0] if error.args else ()
    return [found] if isinstance(found, str) else found


async def started_producer(options: Mapping[str, Any], max_request_bytes: int = MAX_REQUEST_BYTES) -> AIOKafkaProducer:
    """Return a connected producer: idempotent, all acknowledgements, Kafka's own partitioner.

    `options` are aiokafka's options of the connection. Raises as `option_errors`, KafkaError and OSError.
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
    """Return the partitions of a topic. Raises BrokerError if it does not exist, KafkaError if it is not permitted."""
    try:
        async with asyncio.timeout(timeout_s):
            return set(await producer.partitions_for(topic))
    except TimeoutError:
        raise BrokerError(f"topic {topic} does not exist or cannot be looked up") from None


async def stop_producer(producer: AIOKafkaProducer) -> None:
    """Send pending records and close all connections. Takes some seconds at most, even if the broker is gone.

    Completes even if the caller is cancelled meanwhile.
    """
    await _to_the_end(_stop_producer(producer))


async def _stop_producer(producer: AIOKafkaProducer) -> None:
    if await ended(producer.flush()):
        await ended(producer.stop())
        return
    # An idempotent producer retries forever, and `stop` would wait for it. Give up pending records, as in a crash.
    producer._closed = True
    await ended(producer._sender.close())
    await ended(producer.client.close())


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Close all connections. Takes some seconds at most, even if the broker is gone.

    Completes even if the caller is cancelled meanwhile.
    """
    await _to_the_end(_stop_consumer(consumer))


async def _stop_consumer(consumer: AIOKafkaConsumer) -> None:
    await end_fetches(consumer)
    if not await ended(consumer.stop()):
        await ended(consumer._client.close())


async def end_fetches(consumer: AIOKafkaConsumer) -> None:
    """Cancel the fetches of a consumer. Call this before its `stop`.

    The `stop` of aiokafka 0.14 fails at the first fetch that waits for a lost broker: it raises the fetch's
    CancelledError as if the caller were cancelled, and does not close the rest.
    """
    if (fetcher := consumer._fetcher) is not None:
        tasks = {fetcher._fetch_task, *fetcher._pending_tasks}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CLOSE_TIMEOUT_S)
        fetcher._pending_tasks.clear()


async def ended(closing: Coroutine[Any, Any, None]) -> bool:
    """Run `closing` with a timeout. Return whether it completed.

    It runs in a separate task, since aiokafka raises the CancelledError of its inner tasks as if it were ours.
    """
    task = asyncio.create_task(closing)
    done, _ = await asyncio.wait([task], timeout=_CLOSE_TIMEOUT_S)
    if not done:
        task.cancel()
        await asyncio.wait([task])
    return not task.cancelled() and task.exception() is None


async def _to_the_end(closing: Coroutine[Any, Any, None]) -> None:
    """Wait for `closing` to end. A cancellation is raised only after that."""
    task = asyncio.create_task(closing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _partitioner(key: bytes, partitions: list[int], _available: list[int]) -> int:
    return partition_for(key, len(partitions))
