"""Builds commands from control fields: applies defaults, and the rules between fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    DEFAULT_PRIORITY,
    DEFAULT_TENANT,
    Command,
    CompleteCommand,
    ControlCommand,
    ExtendCommand,
    Headers,
    ReplyTo,
    RescheduleCommand,
    ScheduleCommand,
    Selection,
    Target,
)

from .dialect import Envelope
from .fields import COMMANDS, RULES, parse_id, parse_tenant, parse_topic
from .ids import record_id
from .record import CommandRecord, sent_at
from .time_rule import OF_SERIES, TIME_RULE_FIELDS, TRIGGERS, NameOf, acknowledgement, bounds, timing

T = TypeVar("T")

ANY = "*"
"""The end of a bulk command's id. The rest of the id is a prefix of the schedules' ids."""

TIME_RULE = tuple(field for field in RULES if field in TIME_RULE_FIELDS or field == "on-past")
"""The fields of the time rule, in the order in which errors list them."""

_COMMON = frozenset({"command", "id", "tenant", "expected-version", "reply-topic", "reply-partition", "correlation-id"})
_REPLY_PARTITION = RULES["reply-partition"].parse
_OF_MANY = _COMMON | {"labels"}
_OF_FIRING = frozenset({"firing-id", "attempt"})
_OF_COMPLETION = _OF_FIRING | {"completion"}
FIELDS_OF = {
    "schedule": frozenset(RULES) - _OF_COMPLETION,
    "cancel": _OF_MANY,
    "pause": _OF_MANY,
    "resume": _OF_MANY,
    "trigger": _OF_MANY,
    "reschedule": _OF_MANY | TIME_RULE_FIELDS | {"on-past"},
    "complete": _COMMON | _OF_COMPLETION,
    "extend": _COMMON | _OF_FIRING | {"ack-timeout"},
}
"""The allowed fields of each command."""


class TargetMissing(InvalidCommand):
    """A schedule names no target topic. `command` is the rest of the command, with an empty target topic."""

    def __init__(self, field: str, command: ScheduleCommand) -> None:
        reason = (
            f"is required: name the topic that the message goes to, or give tenant {command.tenant} a default target"
        )
        super().__init__(field, reason)
        self.command = command


def command_from(
    given: dict[str, Any],
    record: CommandRecord,
    key: bytes | None,
    payload: bytes | None,
    headers: Headers,
    name_of: NameOf,
    *,
    may_end_in_any: bool = False,
) -> Command:
    """Build a command from parsed fields. Raises InvalidCommand with the sender's names of fields.

    With `may_end_in_any`, ids of single schedules may end in `*`. A command is for such a schedule if it has an
    `expected-version`.
    """
    get = given.get
    name = get("command") or implied_command(given, payload)
    reply_topic = get("reply-topic")
    if reply_topic is not None:
        reply_to = ReplyTo(reply_topic, get("correlation-id"), get("reply-partition"))
    elif lone := next((field for field in ("correlation-id", "reply-partition") if field in given), None):
        raise InvalidCommand(name_of(lone), f"needs {name_of('reply-topic')}: the topic for the result")
    else:
        reply_to = None
    if name != "schedule":
        return _control(name, given, record, key, reply_to, name_of, may_end_in_any=may_end_in_any)
    if not _OF_COMPLETION.isdisjoint(given):
        raise _misplaced(given, _OF_COMPLETION, "schedule", name_of)
    has_series_fields = not OF_SERIES.isdisjoint(given)
    topic = get("target-topic")
    command = ScheduleCommand(
        get("tenant", DEFAULT_TENANT),
        _id_of_one(given, key, name_of) or _generated_id(record),
        key,
        timing(given, name_of),
        Target("" if topic is None else topic, _target_key(given, key, name_of), *_target_partition(given, name_of)),
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
        bounds(given, name_of) if has_series_fields else None,
        acknowledgement(given, name_of) if has_series_fields else None,
        get("paused", False),
    )
    if topic is None:
        raise TargetMissing(name_of("target-topic"), command)
    return command


def implied_command(given: Mapping[str, Any], payload: bytes | None) -> str:
    """Return the command of a record that names none: `cancel` for a null value without a trigger."""
    return "cancel" if payload is None and TRIGGERS.isdisjoint(given) else "schedule"


def envelope_from(
    texts: Mapping[str, str], correlation_id: bytes | None, key: bytes | None, payload: bytes | None
) -> Envelope:
    """Return the readable part of a command from the texts of its fields, which may be invalid."""
    command = texts.get("command")
    if command not in COMMANDS:
        command = implied_command(texts, payload)
    tenant = _legal(parse_tenant, texts.get("tenant"))
    return Envelope(
        command=command,
        tenant=tenant or DEFAULT_TENANT,
        is_tenant_known=tenant is not None or "tenant" not in texts,
        id=_legal(parse_id, texts["id"] if "id" in texts else _as_text(key)),
        reply_to=_reply_to(texts, correlation_id),
    )


def _reply_to(texts: Mapping[str, str], correlation_id: bytes | None) -> ReplyTo | None:
    topic = _legal(parse_topic, texts.get("reply-topic"))
    return (
        None
        if topic is None
        else ReplyTo(topic, correlation_id, _legal(_REPLY_PARTITION, texts.get("reply-partition")))
    )


def _control(
    name: str,
    given: dict[str, Any],
    record: CommandRecord,
    key: bytes | None,
    reply_to: ReplyTo | None,
    name_of: NameOf,
    *,
    may_end_in_any: bool,
) -> Command:
    if not given.keys() <= FIELDS_OF[name]:
        raise _misplaced(given, given.keys() - FIELDS_OF[name], name, name_of)
    if name in ("complete", "extend"):
        return _about_firing(name, given, record, key, reply_to, name_of)
    tenant = given.get("tenant", DEFAULT_TENANT)
    version = given.get("expected-version")
    source = (record.partition, record.offset, record.timestamp)
    selection = _selection(given, name_of, is_of_one=may_end_in_any and "expected-version" in given)
    id = given.get("id") or _id_from_key(key, name_of)
    if id is None:
        raise InvalidCommand(name_of("id"), "is required: the record has no key to use as the id")
    if name == "reschedule":
        if TRIGGERS.isdisjoint(given):
            raise InvalidCommand(name_of("at"), f"is required, or one of {', '.join(map(name_of, sorted(TRIGGERS)))}")
        return RescheduleCommand(
            tenant,
            id,
            key,
            timing(given, name_of),
            *source,
            given.get("on-past"),
            version,
            reply_to,
            bounds(given, name_of),
            selection,
        )
    return ControlCommand(name, tenant, id, key, *source, version, reply_to, selection)  # type: ignore[arg-type]


def _about_firing(
    name: str,
    given: dict[str, Any],
    record: CommandRecord,
    key: bytes | None,
    reply_to: ReplyTo | None,
    name_of: NameOf,
) -> CompleteCommand | ExtendCommand:
    for field in ("firing-id", "attempt"):
        if field not in given:
            raise InvalidCommand(name_of(field), "is required: copy it from the message")
    id, due = given["firing-id"]
    if given.get("id", id) != id:
        raise InvalidCommand(name_of("firing-id"), f"is not a firing of schedule {given['id']}")
    named = (given.get("tenant", DEFAULT_TENANT), id, key, due, given["attempt"])
    source, version = (record.partition, record.offset, record.timestamp), given.get("expected-version")
    if name == "extend":
        return ExtendCommand(*named, *source, given.get("ack-timeout"), version, reply_to)
    return CompleteCommand(*named, given.get("completion", "success") == "success", *source, version, reply_to)


def _selection(given: dict[str, Any], name_of: NameOf, *, is_of_one: bool) -> Selection | None:
    """Return the selection of a bulk command, whose id ends in `*`; None for a command for one schedule."""
    id = given.get("id", "")
    if is_of_one or not id.endswith(ANY):
        if "labels" in given:
            raise InvalidCommand(
                name_of("labels"), f"is for several schedules: give {name_of('id')} as {ANY} or as a prefix and {ANY}"
            )
        return None
    if "expected-version" in given:
        raise InvalidCommand(name_of("expected-version"), "has no meaning for several schedules")
    return Selection(id.removesuffix(ANY), given.get("labels") or None)


def _misplaced(given: dict[str, Any], fields: Collection[str], command: str, name_of: NameOf) -> InvalidCommand:
    field = next(field for field in given if field in fields)
    why = "" if "command" in given or command == "schedule" else ", which a null value without a trigger is"
    article = "an" if command.startswith("e") else "a"
    return InvalidCommand(name_of(field), f"has no meaning for {article} {command}{why}")


def _id_of_one(given: dict[str, Any], key: bytes | None, name_of: NameOf) -> str | None:
    id = given["id"] if "id" in given else _id_from_key(key, name_of)
    if id is not None and id.endswith(ANY):
        hint = "" if "id" in given else ". The id is the record's key: give another id"
        raise InvalidCommand(name_of("id"), f"must not end in {ANY}: that selects several schedules{hint}")
    return id


def _id_from_key(key: bytes | None, name_of: NameOf) -> str | None:
    if key is None:
        return None
    try:
        return parse_id(key.decode())
    except UnicodeDecodeError:
        raise InvalidCommand(
            name_of("id"), "is required: the record's key is not UTF-8, so it cannot be the id"
        ) from None
    except ValueError as error:
        raise InvalidCommand(
            name_of("id"), f"is required, because the record's key cannot be the id: {error}"
        ) from None


def _generated_id(record: CommandRecord) -> str:
    # A copy gets the id of the original record, so that the id does not depend on where the command is read.
    return record_id(record.timestamp, *sent_at(record))


def _target_key(given: dict[str, Any], key: bytes | None, name_of: NameOf) -> bytes | None:
    if "target-key" in given:
        if "target-key-base64" in given:
            raise InvalidCommand(
                name_of("target-key-base64"), f"is given together with {name_of('target-key')}: a message has one key"
            )
        return given["target-key"]  # type: ignore[no-any-return]
    return given.get("target-key-base64", key)


def _target_partition(given: dict[str, Any], name_of: NameOf) -> tuple[int | None, bytes | None]:
    partition = given.get("target-partition")
    partition_key = given.get("target-partition-key")
    if partition is not None and partition_key is not None:
        raise InvalidCommand(
            name_of("target-partition-key"),
            f"is given together with {name_of('target-partition')}: one of them chooses the partition",
        )
    return partition, partition_key


def _legal(parse: Callable[[str], T], text: str | None) -> T | None:
    try:
        return None if text is None else parse(text)
    except ValueError:
        return None


def _as_text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
