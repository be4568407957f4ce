"""From control fields to a command: defaults, and the rules between fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    DEFAULT_PRIORITY,
    DEFAULT_TENANT,
    NOW,
    After,
    CancelCommand,
    Command,
    Headers,
    Once,
    ReplyTo,
    ScheduleCommand,
    Target,
    Timing,
)

from .dialect import Envelope
from .fields import COMMANDS, COMMANDS_NOT_BUILT, parse_id, parse_tenant, parse_topic
from .ids import record_id
from .record import CommandRecord

Spell = Callable[[str], str]
"""Turns a field's name into what its sender called it."""

_OF_CANCEL = frozenset({"command", "id", "tenant", "expected-version", "reply-topic", "correlation-id"})
_TRIGGERS = ("at", "after")


def command_from(
    given: dict[str, Any],
    record: CommandRecord,
    key: bytes | None,
    payload: bytes | None,
    headers: Headers,
    spell: Spell,
) -> Command:
    """Make the command that parsed fields ask for. Raises InvalidCommand in the sender's own names."""
    get = given.get
    name = get("command") or implied_command(given, payload)
    reply_topic = get("reply-topic")
    if reply_topic is not None:
        reply_to = ReplyTo(reply_topic, get("correlation-id"))
    elif "correlation-id" in given:
        raise InvalidCommand(spell("correlation-id"), f"needs {spell('reply-topic')}: where the result goes")
    else:
        reply_to = None
    if name == "cancel":
        return _cancel(given, record, key, reply_to, spell)
    topic = get("target-topic")
    if topic is None:
        raise InvalidCommand(spell("target-topic"), "is required: the topic that the message goes to")
    return ScheduleCommand(
        get("tenant", DEFAULT_TENANT),
        given["id"] if "id" in given else _id_from_key(key, spell) or _generated_id(record),
        key,
        _timing(given, spell),
        Target(topic, _target_key(given, key, spell), *_target_partition(given, spell)),
        payload,
        headers,
        record.partition,
        record.offset,
        record.timestamp,
        get("ttl"),
        get("priority", DEFAULT_PRIORITY),
        get("labels") or None,
        get("on-past"),
        get("on-conflict", "replace"),
        get("expected-version"),
        reply_to,
    )


def implied_command(given: Mapping[str, Any], payload: bytes | None) -> str:
    """Return the command of a record that names none: null without a trigger is a cancel."""
    return "cancel" if payload is None and "at" not in given and "after" not in given else "schedule"


def envelope_from(
    texts: Mapping[str, str], correlation_id: bytes | None, key: bytes | None, payload: bytes | None
) -> Envelope:
    """Tell what can be told from fields' texts, any of which may be wrong."""
    command = texts.get("command")
    if command not in COMMANDS and command not in COMMANDS_NOT_BUILT:
        command = implied_command(texts, payload)
    reply_topic = _legal(parse_topic, texts.get("reply-topic"))
    return Envelope(
        command=command,
        tenant=_legal(parse_tenant, texts.get("tenant")) or DEFAULT_TENANT,
        id=_legal(parse_id, texts["id"] if "id" in texts else _as_text(key)),
        reply_to=ReplyTo(reply_topic, correlation_id) if reply_topic else None,
    )


def _cancel(
    given: dict[str, Any], record: CommandRecord, key: bytes | None, reply_to: ReplyTo | None, spell: Spell
) -> CancelCommand:
    if not given.keys() <= _OF_CANCEL:
        field = next(field for field in given if field not in _OF_CANCEL)
        why = "" if "command" in given else ", which a null value without a trigger is"
        raise InvalidCommand(spell(field), f"has no meaning for a cancel{why}")
    identity = given.get("id") or _id_from_key(key, spell)
    if identity is None:
        raise InvalidCommand(spell("id"), "is required: the record has no key that could stand for it")
    return CancelCommand(
        given.get("tenant", DEFAULT_TENANT),
        identity,
        key,
        record.partition,
        record.offset,
        record.timestamp,
        given.get("expected-version"),
        reply_to,
    )


def _id_from_key(key: bytes | None, spell: Spell) -> str | None:
    if key is None:
        return None
    try:
        return parse_id(key.decode())
    except UnicodeDecodeError:
        raise InvalidCommand(
            spell("id"), "is required: the record's key is not UTF-8, so it cannot be the id"
        ) from None
    except ValueError as error:
        raise InvalidCommand(spell("id"), f"is required: the record's key cannot be the id: {error}") from None


def _generated_id(record: CommandRecord) -> str:
    return record_id(record.timestamp, record.partition, record.offset)


def _timing(given: dict[str, Any], spell: Spell) -> Timing:
    at = given.get("at")
    after = given.get("after")
    if at is None:
        return NOW if after is None else After(after)
    if after is not None:
        first, second = (spell(field) for field in given if field in _TRIGGERS)
        raise InvalidCommand(second, f"is given together with {first}: a schedule has one trigger")
    return Once(at)


def _target_key(given: dict[str, Any], key: bytes | None, spell: Spell) -> bytes | None:
    if "target-key" in given:
        if "target-key-base64" in given:
            raise InvalidCommand(
                spell("target-key-base64"), f"is given together with {spell('target-key')}: a message has one key"
            )
        return given["target-key"]  # type: ignore[no-any-return]
    return given.get("target-key-base64", key)


def _target_partition(given: dict[str, Any], spell: Spell) -> tuple[int | None, bytes | None]:
    partition = given.get("target-partition")
    partition_key = given.get("target-partition-key")
    if partition is not None and partition_key is not None:
        raise InvalidCommand(
            spell("target-partition-key"),
            f"is given together with {spell('target-partition')}: one of them chooses the partition",
        )
    return partition, partition_key


def _legal(parse: Callable[[str], str], text: str | None) -> str | None:
    try:
        return None if text is None else parse(text)
    except ValueError:
        return None


def _as_text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
