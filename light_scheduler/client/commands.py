"""Converts a call's arguments to a command record, with the same headers as any other sender writes.

Before a record is sent, it is read back with the workers' codec. So a mistake is an InvalidCommand that names the
header at once, not a dead letter later.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from light_scheduler.clock import Clock
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Command, ControlName, Headers, ReplyTo, Timing
from light_scheduler.wire import UnsentRecord, derived_id, instant_of, time_ordered_id, trigger_fields
from light_scheduler.wire.build import ANY, TargetMissing
from light_scheduler.wire.content_type import CONTENT_TYPE, is_json_command
from light_scheduler.wire.durations import parse_span
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.ids import FREE_BITS
from light_scheduler.wire.native import NATIVE, header_name

from .options import (
    FROM_CONTENT,
    SAME_AS_KEY,
    Key,
    ManyOptions,
    ScheduleRequest,
    Span,
    TargetKey,
    TimeRule,
    UserHeaders,
)

T = TypeVar("T", str, bool)

_TYPE_NAMES = {str: "text", bool: "True or False"}

_COMMAND = header_name("command")
_ID = header_name("id")
_TENANT = header_name("tenant")
_REPLY_TOPIC = header_name("reply-topic")
_REPLY_PARTITION = header_name("reply-partition")
_CORRELATION_ID = header_name("correlation-id")
_EXPECTED_VERSION = header_name("expected-version")


class InvalidHeader(InvalidCommand):
    """A message cannot have one of the headers that it was given; `field` is the header's name."""


class CommandToSend(NamedTuple):
    """A checked command record, and the tenant and id of its schedule. Its offset is not known yet.

    It goes to the commands topic and to the partition of its key, unless `topic` and `partition` are set. With
    `or_by_key`, it goes to the partition of its key if the topic lacks the requested `partition`.
    """

    tenant: str
    id: str
    key: bytes
    value: bytes | None
    headers: Headers
    topic: str | None = None
    partition: int | None = None
    or_by_key: bool = False


class _Message(NamedTuple):
    """The parts of a record that the sender chooses: key, payload and headers."""

    key: Key | None = None
    payload: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


def schedule_command(
    tenant: str, request: ScheduleRequest, *, generated_id: str | None = None, reply_to: ReplyTo | None = None
) -> CommandToSend:
    """Make the record of a `schedule` command. Raises InvalidCommand naming the invalid header or argument.

    `generated_id` is used if the request has neither id nor key.
    """
    refuse_unknown(request, ScheduleRequest)
    asked = _asked(request, _ARGUMENTS) + _target_key(request.get("target_key", SAME_AS_KEY))
    user = _user_headers(request.get("headers"))
    key, payload, identity = request.get("key"), request.get("payload", b""), request.get("id")
    _check_payload(payload)
    if identity is FROM_CONTENT:
        identity = _id_of_content(key, payload, asked, user)
    elif identity is None and key is None:
        identity = generated_id
    return _checked("schedule", tenant, identity, asked, _Message(key, payload, user), reply_to=reply_to)


def control_command(
    name: ControlName,
    tenant: str,
    id: str,
    *,
    key: Key | None = None,
    expected_version: int | None = None,
    reply_to: ReplyTo | None = None,
) -> CommandToSend:
    """Make the record of a `cancel`, `pause`, `resume` or `trigger`. Raises InvalidCommand, naming the invalid
    header."""
    _refuse_selection(name, id)
    return _checked(name, tenant, id, _version(expected_version), _Message(key), reply_to=reply_to)


def reschedule_command(
    tenant: str,
    id: str,
    rule: TimeRule,
    *,
    key: Key | None = None,
    expected_version: int | None = None,
    reply_to: ReplyTo | None = None,
) -> CommandToSend:
    """Make the record of a `reschedule`. Raises InvalidCommand, naming the invalid header."""
    refuse_unknown(rule, TimeRule)
    _refuse_selection("reschedule", id)
    headers = _asked(rule, TimeRule.__annotations__) + _version(expected_version)
    return _checked("reschedule", tenant, id, headers, _Message(key), reply_to=reply_to)


def control_many_command(
    name: ControlName, tenant: str, selected: ManyOptions, *, reply_to: ReplyTo | None = None
) -> CommandToSend:
    """Make the record of a bulk `cancel`, `pause`, `resume` or `trigger`. Raises InvalidCommand."""
    return _for_many(name, tenant, selected, [], reply_to)


def reschedule_many_command(
    tenant: str, selected: ManyOptions, rule: TimeRule, *, reply_to: ReplyTo | None = None
) -> CommandToSend:
    """Make the record of a bulk `reschedule`. Raises InvalidCommand, naming the invalid header or argument."""
    refuse_unknown(rule, TimeRule)
    return _for_many("reschedule", tenant, selected, _asked(rule, TimeRule.__annotations__), reply_to)


def complete_command(
    tenant: str,
    firing_id: str,
    attempt: int,
    *,
    succeeded: bool = True,
    key: Key | None = None,
    reply_to: ReplyTo | None = None,
) -> CommandToSend:
    """Make the record of a `complete`. Raises InvalidCommand, naming the invalid header."""
    completion = (header_name("completion"), b"success" if succeeded else b"failure")
    headers = [*_firing(firing_id, attempt), completion]
    return _checked("complete", tenant, _id_of(firing_id), headers, _Message(key), reply_to=reply_to)


def extend_command(
    tenant: str,
    firing_id: str,
    attempt: int,
    *,
    ack_timeout: Span | None = None,
    key: Key | None = None,
    reply_to: ReplyTo | None = None,
) -> CommandToSend:
    """Make the record of an `extend`. Raises InvalidCommand, naming the invalid header."""
    headers = _firing(firing_id, attempt) + _asked({"ack_timeout": ack_timeout}, ["ack_timeout"])
    return _checked("extend", tenant, _id_of(firing_id), headers, _Message(key), reply_to=reply_to)


def _firing(firing_id: str, attempt: int) -> Headers:
    return [
        (header_name("firing-id"), _bytes(firing_id, header_name("firing-id"))),
        (header_name("attempt"), str(attempt).encode()),
    ]


def _id_of(firing_id: str) -> str:
    return firing_id.rpartition("@")[0] or firing_id


def command_in(record: UnsentRecord) -> Command:
    """Return the command of a record. Raises InvalidCommand, except if a schedule has no target topic: its tenant may
    have a default target, which only workers know."""
    try:
        return NATIVE.decode(record)
    except TargetMissing as error:
        return error.command


def time_rule_headers(rule: TimeRule) -> Headers:
    """Return the headers of a time rule. Raises InvalidCommand for an invalid value."""
    return _asked(rule, TimeRule.__annotations__)


def span_ms(name: str, given: Span) -> int:
    """Return a duration in ms. Raises InvalidCommand naming the argument if it is not one."""
    try:
        return parse_span(str(_span(given)))
    except ValueError as error:
        raise InvalidCommand(name, str(error)) from None


def new_id(clock: Clock) -> str:
    """Return a new time-ordered id."""
    return time_ordered_id(clock.now(), secrets.randbits(FREE_BITS))


def refuse_unknown(arguments: Mapping[str, Any], kind: type) -> None:
    """Raise InvalidCommand for an argument that the TypedDict does not have."""
    known = kind.__annotations__
    for name in arguments:
        if name not in known:
            raise InvalidCommand(name, f"is not an argument; use {', '.join(known)}")


def _refuse_selection(command: str, id: str) -> None:
    """Raise InvalidCommand for an id that would turn a command for one schedule into a bulk command."""
    if _bytes(id, _ID).endswith(ANY.encode()):
        raise InvalidCommand(
            _ID, f"must not end in {ANY}: this is for one schedule. For several, use SchedulerClient.{command}_many"
        )


def _for_many(
    command: str, tenant: str, selected: ManyOptions, asked: Headers, reply_to: ReplyTo | None
) -> CommandToSend:
    prefix, everything = _given(selected, "id_prefix", ""), _given(selected, "everything", False)
    labels = _asked(selected, ["labels"])
    narrowed = bool(prefix) or bool(labels and labels[0][1])
    if narrowed == everything:
        given = "is given together with id_prefix or labels" if everything else "is needed without id_prefix and labels"
        raise InvalidCommand("everything", f"{given}: it selects all schedules of the tenant")
    return _checked(command, tenant, prefix + ANY, [*labels, *asked], _Message(), reply_to=reply_to)


def _given(selected: ManyOptions, name: str, default: T) -> T:
    """Return an argument, or its default for None. Raises InvalidCommand if its type differs from the default's."""
    given: Any = selected.get(name)
    if given is None:
        return default
    if not isinstance(given, type(default)):
        raise InvalidCommand(name, f"must be {_TYPE_NAMES[type(default)]}, not {type(given).__name__}")
    return given


def _checked(
    command: str,
    tenant: str,
    identity: str | None,
    asked: Headers,
    message: _Message,
    *,
    reply_to: ReplyTo | None,
) -> CommandToSend:
    key, value, user = message
    headers: Headers = [(_COMMAND, command.encode()), (_TENANT, _bytes(tenant, _TENANT))]
    if identity is not None:
        headers.append((_ID, _bytes(identity, _ID)))
    headers += asked
    if reply_to is not None:
        headers.append((_REPLY_TOPIC, reply_to.topic.encode()))
        headers.append((_CORRELATION_ID, reply_to.correlation_id))
        if reply_to.partition is not None:
            headers.append((_REPLY_PARTITION, str(reply_to.partition).encode()))
    headers += user
    record_key = _bytes(identity if key is None else key, "key")
    read = command_in(UnsentRecord(record_key, value, headers))
    return CommandToSend(tenant, read.id, record_key, value, headers)


def _check_payload(given: object) -> None:
    if given is not None and not isinstance(given, bytes):
        raise InvalidCommand("payload", f"must be bytes or None, not {type(given).__name__}")


def _asked(arguments: Mapping[str, Any], names: Iterable[str]) -> Headers:
    """Return the headers for arguments, in the order of `names`."""
    headers: Headers = []
    for name in names:
        given = arguments.get(name)
        if given is None:
            continue
        if name == "trigger":
            headers += _trigger(given)
            continue
        header = header_name(_FIELDS.get(name) or name.replace("_", "-"))
        write = _WRITERS.get(name)
        try:
            headers.append((header, _bytes(given if write is None else write(given), header)))
        except ValueError as error:
            raise InvalidCommand(header, str(error)) from None
    return headers


def _version(expected: int | None) -> Headers:
    return [] if expected is None else [(_EXPECTED_VERSION, _bytes(expected, _EXPECTED_VERSION))]


def _trigger(given: object) -> Headers:
    if not isinstance(given, Timing):
        kinds = ", ".join(kind.__name__ for kind in get_args(Timing))
        raise InvalidCommand("trigger", f"must be one of {kinds}, not {type(given).__name__}")
    try:
        fields = trigger_fields(given)
    except ValueError as error:
        raise InvalidCommand("trigger", str(error)) from None
    return [(header_name(field), text.encode()) for field, text in fields.items()]


def _id_of_content(key: Key | None, payload: bytes | None, asked: Headers, user: Headers) -> str:
    """Derive an id from all content of the request, without headers that only say how to handle the command."""
    content = [header for header in asked if header[0] not in (_EXPECTED_VERSION, header_name("on-conflict"))]
    entity = None if key is None else _bytes(key, "key")
    return derived_id(msgspec.msgpack.encode((entity, payload, sorted(content, key=lambda header: header[0]), user)))


def _bytes(given: object, name: str) -> bytes:
    try:
        return given if isinstance(given, bytes) else str(given).encode()
    except UnicodeEncodeError as error:
        raise InvalidCommand(name, f"cannot be written as UTF-8: {error}") from None


def _instant(given: datetime | int | str) -> int | str:
    return instant_of(given) if isinstance(given, datetime) else given


def _span(given: timedelta | int | str) -> int | str:
    # Rounded up: nothing happens earlier than requested.
    return -(-given // timedelta(milliseconds=1)) if isinstance(given, timedelta) else given


def _backoff(given: str | Iterable[timedelta | int | str]) -> str:
    if not isinstance(given, Iterable):
        raise ValueError(f"must be a sequence of intervals or text, not {type(given).__name__}")
    return given if isinstance(given, str) else ",".join(str(_span(interval)) for interval in given)


def _flag(given: bool | str) -> str:
    return str(given).lower()


def _labels(given: Mapping[str, str] | str) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"must be a mapping or text, not {type(given).__name__}")
    for name, value in given.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise ValueError(f"label {name!r}: {value!r} must have a name and a value that are text")
        if "," in name or "=" in name or "," in value:
            raise ValueError(f"label {name!r} has a comma or an equals sign in it")
    return ",".join(f"{name}={value}" for name, value in given.items())


def _target_key(given: TargetKey) -> Headers:
    if given is SAME_AS_KEY:
        return []
    if given is None:
        return [(header_name("target-key"), None)]
    name = header_name("target-key")
    key = _bytes(given, name)
    try:
        key.decode()
    except UnicodeDecodeError:
        return [(header_name("target-key-base64"), base64.b64encode(key))]
    return [(name, key)]


def _user_headers(given: UserHeaders | None) -> Headers:
    pairs = given.items() if isinstance(given, Mapping) else given or ()
    pairs = list(pairs) if isinstance(pairs, Iterable) else [pairs]
    if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
        raise InvalidCommand("headers", "must be a mapping, or pairs of a name and a value")
    return [_user_header(name, value) for name, value in pairs]


def _user_header(name: str, value: bytes | str | None) -> tuple[str, bytes | None]:
    if not isinstance(name, str):
        raise InvalidCommand("headers", f"has the name {name!r}: names must be text")
    if name.startswith(CONTROL_PREFIX):
        raise InvalidHeader(name, f"header names that begin with {CONTROL_PREFIX} are reserved for the scheduler")
    content = None if value is None else _bytes(value, name)
    if name == CONTENT_TYPE and is_json_command(content):
        raise InvalidHeader(name, "marks a command in the JSON form, so a message cannot have this value")
    return name, content


# Arguments that are written unchanged, or by one of `_WRITERS`. The header has the argument's name unless listed here.
_FIELDS = {"topic": "target-topic"}
_ELSEWHERE = {"id", "key", "payload", "target_key", "headers"}
_ARGUMENTS = tuple(name for name in ScheduleRequest.__annotations__ if name not in _ELSEWHERE)
_WRITERS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("at", "start", "end"), _instant),
    **dict.fromkeys(("after", "every", "jitter", "window", "misfire_grace", "ttl", "on_past", "ack_timeout"), _span),
    "backoff": _backoff,
    "labels": _labels,
    "paused": _flag,
}
