"""`kafka_options`: the caller's options for aiokafka or librdkafka, in addition to those that a client sets itself.

A client has a producer and consumers. In aiokafka, each has options that the other refuses.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from light_scheduler.errors import InvalidCommand

Options = Mapping[str, Any]

_FIELD = "kafka_options"


def _accepted(client: type) -> frozenset[str]:
    parameters = inspect.signature(client).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY)


_OF_PRODUCERS = _accepted(AIOKafkaProducer)
_OF_CONSUMERS = _accepted(AIOKafkaConsumer)

_ADDRESS = dict.fromkeys(
    ("bootstrap_servers", "bootstrap.servers", "metadata.broker.list"), "is set by the argument bootstrap_servers"
)
_BYTES = dict.fromkeys(
    ("key_serializer", "value_serializer", "key_deserializer", "value_deserializer"),
    "cannot be changed: records are read and written as bytes. Payloads have serializers of their own: "
    "light_scheduler.client.JsonSerializer and others",
)
_COMMITTED = dict.fromkeys(
    ("isolation_level", "isolation.level", "enable_auto_commit", "enable.auto.commit"),
    "cannot be changed: exactly-once delivery depends on it",
)
_SET_BY_CLIENTS = {
    **_ADDRESS,
    **_BYTES,
    **_COMMITTED,
    **dict.fromkeys(("max_request_size", "message.max.bytes"), "is set by the argument max_request_bytes"),
    **dict.fromkeys(
        (
            *("acks", "request.required.acks", "partitioner", "max_batch_size"),
            *("enable_idempotence", "enable.idempotence", "transactional_id", "transactional.id"),
        ),
        "cannot be changed: exactly-once delivery depends on it",
    ),
    **dict.fromkeys(("group_id", "group.id"), "cannot be changed: the client reads results outside of any group"),
}
_SET_BY_MEMBERS = {**_ADDRESS, **_BYTES, **_COMMITTED, "group_id": "is set by the argument group_id"}


def check_aiokafka_options(options: Options) -> None:
    """Raise InvalidCommand for an option that a client sets itself, or that aiokafka's clients lack."""
    _refuse_set(options, _SET_BY_CLIENTS)
    _refuse_unknown(options, _OF_PRODUCERS | _OF_CONSUMERS, "producer or consumer")


def check_member_options(options: Options) -> None:
    """Raise InvalidCommand for an option that a group member sets itself, or that aiokafka's consumer lacks."""
    _refuse_set(options, _SET_BY_MEMBERS)
    _refuse_unknown(options, _OF_CONSUMERS, "consumer")


def check_librdkafka_options(options: Options) -> None:
    """Raise InvalidCommand for an option that a client sets itself. librdkafka refuses unknown ones when it starts."""
    _refuse_set(options, _SET_BY_CLIENTS)


def of_producer(options: Options) -> dict[str, Any]:
    """Return the options that aiokafka's producer accepts."""
    return {name: value for name, value in options.items() if name in _OF_PRODUCERS}


def of_consumer(options: Options) -> dict[str, Any]:
    """Return the options that aiokafka's consumer accepts."""
    return {name: value for name, value in options.items() if name in _OF_CONSUMERS}


def _refuse_set(options: Options, reasons: Mapping[str, str]) -> None:
    for name in options:
        if name in reasons:
            raise InvalidCommand(_FIELD, f"{name} {reasons[name]}")


def _refuse_unknown(options: Options, known: frozenset[str], client: str) -> None:
    for name in options:
        if name not in known:
            close = get_close_matches(str(name).replace(".", "_"), sorted(known), 1)
            meant = f". Did you mean {close[0]}?" if close else ""
            raise InvalidCommand(_FIELD, f"{name} is not an option of aiokafka's {client}{meant}")
