"""The native dialect: a command in the headers of a record. The value is the payload.

This is the hot path of intake. One pass over the headers looks up each in a dict. It is a control field, which is
parsed immediately, or a user's header, which is kept unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Command, Entry, Headers, Target

from .build import command_from, envelope_from
from .content_type import CONTENT_TYPE, is_json_command
from .dialect import Envelope, Plain, PlainTask
from .fields import CONTROL_PREFIX, OF_WORKERS, RULES, Parse, may_mean, parse_topic, why_unknown
from .fired_headers import fired_headers
from .firing import firing_headers
from .json_commands import JSON, is_json_record
from .record import CommandRecord
from .signatures import not_ours

# Fields whose bytes are kept unchanged, since only the sender interprets them.
_OPAQUE = {"correlation-id"}

# Header -> (field, parser of its text).
_CONTROL: dict[str, tuple[str, Parse]] = {CONTROL_PREFIX + field: (field, rule.parse) for field, rule in RULES.items()}

# The only field that may be null, since a key can be null.
_NULLABLE = "target-key"

_AT = CONTROL_PREFIX + "at"
_TARGET_TOPIC = CONTROL_PREFIX + "target-topic"
_DIGITS = 13
"""Digits of an instant in ms from the years 2001 to 2286. Every number with this many digits is valid."""


_USERS, _DUE, _TOPIC, _TYPE, _CONTROLS = range(5)
"""Kinds of headers: the user's, the two of each plain command, the content type, and other control fields."""

_MOST_KEPT, _MOST_CHARACTERS = 4_096, 64
"""Maximum number of cached names of headers and of topics, and maximum length of a header's. Senders choose them."""


class _Kinds(dict[str, int]):
    """A cache of kinds of headers, by name."""

    def __missing__(self, name: str) -> int:
        kind = _CONTROLS if name.startswith(CONTROL_PREFIX) else _USERS
        if len(self) < _MOST_KEPT and len(name) <= _MOST_CHARACTERS:
            self[name] = kind
        return kind


_KINDS = _Kinds({_AT: _DUE, _TARGET_TOPIC: _TOPIC, CONTENT_TYPE: _TYPE})


class _Topics(dict[bytes, str]):
    """A cache of valid topic names, by their bytes. Raises ValueError for invalid names."""

    def __missing__(self, value: bytes) -> str:
        topic = parse_topic(value.decode())
        if len(self) < _MOST_KEPT:
            self[value] = topic
        return topic


_TOPICS = _Topics()


def _is_unknown_control(name: str) -> bool:
    return name.startswith(CONTROL_PREFIX) and name not in _CONTROL


def header_name(field: str) -> str:
    """Return the header of a control field."""
    return CONTROL_PREFIX + field


def _names_one_tenant(headers: Sequence[tuple[str, bytes | None]]) -> bool:
    """Return whether headers name a tenant at most once, and none has a name similar to tenant."""
    given = [value for name, value in headers if name == header_name("tenant")]
    unknown = (name.removeprefix(CONTROL_PREFIX) for name, _ in headers if _is_unknown_control(name))
    return None not in given and len(given) <= 1 and not may_mean(unknown, "tenant")


class NativeDialect:
    """Commands in headers. Records with the content type of JSON commands are read in the JSON form."""

    name = "native"
    forwards = True
    has_schemas = False
    has_tasks = False

    def plain(self, record: CommandRecord) -> Plain | None:
        at = topic = None
        user: Headers = []
        for header in record.headers:
            name, value = header
            kind = _KINDS[name]
            if kind == _USERS:
                user.append(header)
            elif kind == _DUE:
                if at is not None or value is None or len(value) != _DIGITS or not value.isdigit() or value < b"1":
                    return None
                at = int(value)
            elif kind == _TOPIC:
                if topic is not None or value is None:
                    return None
                try:
                    topic = _TOPICS[value]
                except ValueError:  # UnicodeDecodeError is one
                    return None
            elif kind == _CONTROLS or is_json_command(value):
                return None
            else:
                user.append(header)
        if at is None or topic is None:
            return None
        return at, Target(topic, record.key), record.value, user

    def task(self, record: CommandRecord) -> PlainTask | None:  # noqa: ARG002 - it has no fast path for them
        return None

    def decode(self, record: CommandRecord) -> Command:
        given: dict[str, Any] = {}
        user: Headers = []
        control = _CONTROL.get
        name = ""
        try:
            for header in record.headers:
                name, value = header
                rule = control(name)
                if rule is None:
                    if name.startswith(CONTROL_PREFIX):
                        if name in OF_WORKERS:
                            raise not_ours(name)
                        raise InvalidCommand(name, why_unknown(name.removeprefix(CONTROL_PREFIX), name, _CONTROL))
                    if name == CONTENT_TYPE and is_json_command(value):
                        return JSON.decode(record)
                    user.append(header)
                    continue
                field, parse = rule
                if field in given:
                    raise InvalidCommand(name, "is given twice")
                if value is None:
                    if field != _NULLABLE:
                        raise InvalidCommand(name, "must not be null")
                    given[field] = None
                elif field in _OPAQUE:
                    given[field] = value
                else:
                    given[field] = parse(value.decode())
        except UnicodeDecodeError:
            raise InvalidCommand(name, "is not UTF-8 text") from None
        except ValueError as error:
            raise InvalidCommand(name, str(error)) from None
        return command_from(given, record, record.key, record.value, user, header_name)

    def field_name(self, record: CommandRecord, field: str) -> str:
        """Return the header of a field, or its path if the command is JSON."""
        return JSON.field_name(record, field) if is_json_record(record) else field

    def salvage(self, record: CommandRecord) -> Envelope:
        if is_json_record(record):
            return JSON.salvage(record)
        texts: dict[str, str] = {}
        correlation_id = None
        for name, value in record.headers:
            field, _ = _CONTROL.get(name, (None, None))
            if field is None or value is None:
                continue
            if field in _OPAQUE:
                correlation_id = value
            else:
                texts.setdefault(field, value.decode(errors="replace"))
        envelope = envelope_from(texts, correlation_id, record.key, record.value)
        is_known = envelope.is_tenant_known and _names_one_tenant(record.headers)
        return msgspec.structs.replace(envelope, is_tenant_known=is_known)

    def delivered(self, entry: Entry, fired_at: int, source_topic: bytes) -> tuple[bytes | None, Headers]:
        return entry.schedule.payload, firing_headers(entry, fired_at, source_topic)

    def fired_headers(self, fired_at: int, source_topic: bytes) -> Callable[[Entry, bytes], Headers]:
        return fired_headers(fired_at, source_topic)

    def needs_schemas(self, records: Sequence[CommandRecord]) -> bool:  # noqa: ARG002 - headers need no schema
        return False

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:  # noqa: ARG002 - headers need no schema
        return ()


NATIVE = NativeDialect()
