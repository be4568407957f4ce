"""Converts errors of confluent-kafka to this package's errors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from light_scheduler.connection import Connection
from light_scheduler.connection.diagnosis import require_access
from light_scheduler.errors import BrokerError, BrokerUnreachable, InvalidCommand

NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._MSG_TIMED_OUT)
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE)
_DENIED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


@contextmanager
def librdkafka_errors(doing: str) -> Iterator[None]:
    """Raise confluent-kafka's exceptions as BrokerError or InvalidCommand, with `doing` in the message."""
    try:
        yield
    except KafkaException as error:
        raise failure(doing, error.args[0]) from error


@contextmanager
def option_errors(options: Collection[str]) -> Iterator[None]:
    """Raise what librdkafka says of one of these options as InvalidCommand. To be used where a client of it is made.

    Names all of them where librdkafka has another name for the one at fault: `linger.ms` is `queue.buffering.max.ms`.
    """
    try:
        yield
    except KafkaException as error:
        if not options or error.args[0].code() != KafkaError._INVALID_ARG:
            raise
        text = error.args[0].str().strip()
        named = [name for name in options if f'"{name}"' in text] or options
        raise InvalidCommand("kafka_options", f"librdkafka refuses {' or '.join(named)}: {text}") from error


def failure(doing: str, error: Any) -> BrokerError | InvalidCommand:
    """Convert an error of librdkafka."""
    code = error.code()
    if code in _TOO_LARGE:
        return InvalidCommand("payload", f"is too large for a record: {error.str()}")
    if code in NO_ANSWER:
        return BrokerError(f"{doing}: the broker did not answer in time")
    if code in _DENIED:
        return BrokerError(f"{doing}: this user has no right to do so; docs/security.md lists the rights to give")
    if code in MISSING:
        return BrokerError(
            f"{doing}: the topic or partition does not exist; `light-scheduler topics create` makes topics"
        )
    return BrokerError(f"{doing}: {error.str() or error.name()}")


def unreachable(connection: Connection, timeout: float) -> BrokerError:
    """Return why there is no answer: the login, TLS, or no broker at the address."""
    # In its own thread: the caller's may have a running event loop, for example in a notebook.
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(require_access, connection, timeout).result()
        except BrokerError as fault:
            return fault
    return BrokerUnreachable(str(connection))
