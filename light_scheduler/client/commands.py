"""From a call's arguments to a command record: the same headers that any other sender would write.

Every record is read back with the codec that the workers use before it is sent, so that a mistake is an InvalidCommand
here and now, naming the header, and not a dead letter later.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Required, TypedDict

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Headers, OnConflict, ReplyTo
from light_scheduler.wire import instant_of
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.json_form import CONTENT_TYPE, is_json_command
from light_scheduler.wire.native import NATIVE, header_name


class _SameAsKey(Enum):
    SAME_AS_KEY = "same as key"


SAME_AS_KEY: Final = _SameAsKey.SAME_AS_KEY
"""`target_key` of a message whose key is the entity key."""

Instant = datetime | int | str
"""An aware datetime, UTC epoch ms, or text as the header `schedule-at` takes it."""

Span = timedelta | int | str
"""A timedelta, ms, or text such as `15m`."""

UserHeaders = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]


class ScheduleOptions(TypedDict, total=False):
    """What can be asked of a schedule besides its id and payload: everything but the topic is optional.

    `key`: entity key, which decides order and partition; default: the id. Cancel with the same key.
    `target_key`: key of the delivered message; default: `key`. None: a null key.
    `at` or `after`: when; neither: now. `ttl`: not delivered later than that after due.
    `on_past`: if due has passed on arrival: "fire" (default), "reject", or a grace.
    `priority`: 0 (first) to 255 among what is due in the same instant; default 100.
    """

    topic: Required[str]
    at: Instant | None
    after: Span | None
    key: str | bytes | None
    target_key: str | bytes | Literal[_SameAsKey.SAME_AS_KEY] | None
    target_partition: int | None
    target_partition_key: str | None
    headers: UserHeaders | None
    ttl: Span | None
    priority: int | None
    labels: Mapping[str, str] | str | None
    on_past: Span | None
    on_conflict: OnConflict | None
    expected_version: int | None


class ScheduleRequest(ScheduleOptions, total=False):
    """One whole request, as `schedule_many` takes it.

    `id`: identity within the tenant; default: the key, or a new time-ordered id if there is no key either.
    `payload`: the message's value; default: no bytes. None: a tombstone.
    """

    id: str | None
    payload: bytes | None


_KNOWN = tuple(ScheduleRequest.__annotations__)

_COMMAND = header_name("command")
_ID = header_name("id")
_TENANT = header_name("tenant")
_REPLY_TOPIC = header_name("reply-topic")
_CORRELATION_ID = header_name("correlation-id")


class CommandToSend(NamedTuple):
    """A command record, checked, and the identity that it has. Where it will be in the log is not known yet."""

    tenant: str
    id: str
    key: bytes
    value: bytes | None
    headers: Headers


class _Unsent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int = 0
    offset: int = 0
    timestamp: int = 0


def schedule_command(
    tenant: str, request: ScheduleRequest, *, generated_id: str | None = None, reply_to: ReplyTo | None = None
) -> CommandToSend:
    """Make the record of a `schedule` command. Raises InvalidCommand, naming the header or the argument at fault.

    `generated_id` stands in where the request has neither id nor key.
    """
    key = request.get("key")
    identity = request.get("id")
    if identity is None and key is None:
        identity = generated_id
    headers = _identity("schedule", tenant, identity)
    for name, given in request.items():
        if name in _HEADERS:
            header, written = _HEADERS[name]
            if given is not None:
                headers.append((header, _bytes(written(given), header)))
        elif name not in _KNOWN:
            raise InvalidCommand(name, f"is not known; there are {', '.join(_KNOWN)}")
    headers += _target_key(request.get("target_key", SAME_AS_KEY))
    user = _user_headers(request.get("headers"))
    return _checked(tenant, identity, key, request.get("payload", b""), headers, reply_to, user)


def cancel_command(
    tenant: str,
    id: str,
    *,
    key: str | bytes | None = None,
    expected_version: int | None = None,
    reply_to: ReplyTo | None = None,
) -> CommandToSend:
    """Make the record of a `cancel` command. Raises InvalidCommand, naming the header at fault."""
    headers = _identity("cancel", tenant, id)
    if expected_version is not None:
        headers.append((header_name("expected-version"), _bytes(expected_version, header_name("expected-version"))))
    return _checked(tenant, id, key, None, headers, reply_to, [])


def _identity(command: str, tenant: str, id: str | None) -> Headers:
    headers: Headers = [(_COMMAND, command.encode()), (_TENANT, _bytes(tenant, _TENANT))]
    if id is not None:
        headers.append((_ID, _bytes(id, _ID)))
    return headers


def _checked(
    tenant: str,
    identity: str | None,
    key: str | bytes | None,
    value: bytes | None,
    headers: Headers,
    reply_to: ReplyTo | None,
    user: Headers,
) -> CommandToSend:
    if value is not None and not isinstance(value, bytes):
        raise InvalidCommand("payload", f"must be bytes or None, not {type(value).__name__}")
    if reply_to is not None:
        headers.append((_REPLY_TOPIC, reply_to.topic.encode()))
        headers.append((_CORRELATION_ID, reply_to.correlation_id))
    headers += user
    record_key = _bytes(identity if key is None else key, "key")
    command = NATIVE.decode(_Unsent(record_key, value, headers))
    return CommandToSend(tenant, command.id, record_key, value, headers)


def _bytes(given: object, name: str) -> bytes:
    try:
        return given if isinstance(given, bytes) else str(given).encode()
    except UnicodeEncodeError as error:
        raise InvalidCommand(name, f"cannot be written as UTF-8: {error}") from None


def _instant(given: Instant) -> int | str:
    if not isinstance(given, datetime):
        return given
    try:
        return instant_of(given)
    except ValueError as error:
        raise InvalidCommand(header_name("at"), str(error)) from None


def _span(given: Span) -> int | str:
    # Rounded up: nothing happens before it was asked for.
    return -(-given // timedelta(milliseconds=1)) if isinstance(given, timedelta) else given


def _labels(given: Mapping[str, str] | str) -> str:
    if isinstance(given, str):
        return given
    for name, value in given.items():
        if "," in name or "=" in name or "," in value:
            raise InvalidCommand(header_name("labels"), f"label {name!r} has a comma or an equals sign in it")
    return ",".join(f"{name}={value}" for name, value in given.items())


def _target_key(given: str | bytes | _SameAsKey | None) -> Headers:
    if isinstance(given, _SameAsKey):
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
    return [_user_header(name, value) for name, value in pairs]


def _user_header(name: str, value: bytes | str | None) -> tuple[str, bytes | None]:
    if name.startswith(CONTROL_PREFIX):
        raise InvalidCommand(name, f"names of headers that begin with {CONTROL_PREFIX} are the scheduler's")
    content = None if value is None else _bytes(value, name)
    if name == CONTENT_TYPE and is_json_command(content):
        raise InvalidCommand(name, "is the one of commands in the JSON form, so it cannot be a message's")
    return name, content


def _as_given(given: object) -> object:
    return given


# Argument -> (header, what turns it into the header's text).
_HEADERS: dict[str, tuple[str, Callable[[Any], object]]] = {
    name: (header_name(field), written)
    for name, field, written in (
        ("topic", "target-topic", _as_given),
        ("at", "at", _instant),
        ("after", "after", _span),
        ("target_partition", "target-partition", _as_given),
        ("target_partition_key", "target-partition-key", _as_given),
        ("ttl", "ttl", _span),
        ("priority", "priority", _as_given),
        ("labels", "labels", _labels),
        ("on_past", "on-past", _span),
        ("on_conflict", "on-conflict", _as_given),
        ("expected_version", "expected-version", _as_given),
    )
}
