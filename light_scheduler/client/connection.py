"""How clients reach Kafka: one producer and readers with the same connection, failures as BrokerError."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
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


async def started_producer(options: Mapping[str, Any]) -> AIOKafkaProducer:
    """Return a connected producer: idempotent, all acknowledgements, Kafka's own partitioner.

    `options` are those of the connection, as aiokafka takes them. Raises as `broker_errors` does.
    """
    producer = AIOKafkaProducer(
        acks="all",
        enable_idempotence=True,
        max_batch_size=_BATCH_BYTES,
        max_request_size=MAX_REQUEST_BYTES,
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
    try:
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await producer.stop()
    except TimeoutError:
        # An idempotent producer tries for ever: what is pending then is given up, as a crash would.
        await producer._sender.close()
        await producer.client.close()


def _partitioner(key: bytes, partitions: list[int], _available: list[int]) -> int:
    return partition_for(key, len(partitions))
