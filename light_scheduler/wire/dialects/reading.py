"""Reads parts of other schedulers' records: ids, times and topics. Errors have the sender's names of fields."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, LATEST_INSTANT, ControlCommand, Headers
from light_scheduler.wire.content_type import CONTENT_TYPE, is_json_command
from light_scheduler.wire.durations import shown
from light_scheduler.wire.fields import parse_id, parse_topic
from light_scheduler.wire.record import CommandRecord

SECOND_MS = 1_000
_SECONDS = re.compile(r"\+?\d{1,20}", re.ASCII)
_DIGITS = 10
"""Digits of an instant in seconds from the years 2001 to 2286. Every number with this many digits is valid."""
_BASE64 = "base64:"
_BASE64_BYTES = _BASE64.encode()


Given = dict[str, bytes | None]
"""Headers by name. If several have the same name, the first counts, as in the other schedulers."""


def first_headers(record: CommandRecord) -> Given:
    """Return the headers of a record by name."""
    return dict(record.headers[::-1])


def plain_headers(record: CommandRecord) -> Given | None:
    """Return the headers of a record by name; None if two have the same name, or the record is in the JSON form."""
    headers = dict(record.headers)
    if len(headers) != len(record.headers) or (CONTENT_TYPE in headers and is_json_command(headers[CONTENT_TYPE])):
        return None
    return headers


def has_plain_headers(record: CommandRecord) -> bool:
    """Return whether `plain_headers` would return headers."""
    headers = record.headers
    if len(headers) == 1:
        ((name, value),) = headers
        return name != CONTENT_TYPE or not is_json_command(value)
    return not headers or plain_headers(record) is not None


def is_plain_key(key: bytes | None) -> bool:
    """Return whether a key, if it is valid text, is an id without encoding."""
    return key is not None and key[:1] > b" " and not key.startswith(_BASE64_BYTES)


def plain_seconds(value: bytes | None) -> int | None:
    """Parse an instant of ten digits, as seconds since 1970 nearly always are. Return UTC epoch ms."""
    return int(value) * SECOND_MS if value is not None and len(value) == _DIGITS and value.isdigit() else None


def plain_topic(value: bytes | None) -> str | None:
    """Return a topic name; None if it is invalid."""
    if value is None:
        return None
    try:
        return parse_topic(value.decode())
    except ValueError:  # UnicodeDecodeError is one
        return None


def text_header(headers: Given, name: str, meaning: str) -> str:
    """Return a header's text. Raises InvalidCommand if it is missing; `meaning` describes the header."""
    value = headers.get(name)
    if not value:
        raise InvalidCommand(name, f"is required: {meaning}")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidCommand(name, "is not UTF-8 text") from None


def topic_header(headers: Given, name: str) -> str:
    """Return the topic in a header. Raises InvalidCommand."""
    return topic_named(text_header(headers, name, "the topic that the message goes to"), name)


def topic_named(text: str, field: str) -> str:
    """Return a valid topic name. Raises InvalidCommand."""
    try:
        return parse_topic(text)
    except ValueError as error:
        raise InvalidCommand(field, str(error)) from None


def seconds_header(headers: Given, name: str) -> int:
    """Return the instant (UTC epoch ms) in a header with whole seconds since 1970. Raises InvalidCommand."""
    plain = plain_seconds(headers.get(name))
    if plain is not None:
        return plain
    text = text_header(headers, name, "when the message is due, in seconds since 1970")
    if not _SECONDS.fullmatch(text):
        raise InvalidCommand(name, f"{shown(text)} is not a number of whole seconds since 1970, such as 1767225600")
    ms = int(text) * SECOND_MS
    if ms > LATEST_INSTANT:
        raise InvalidCommand(name, f"{text} is beyond the year 9999: use seconds since 1970, not milliseconds")
    return ms


def key_id(record: CommandRecord, field: str = "key") -> str:
    """Return the id for a record's key. Raises InvalidCommand if the key is empty."""
    id = id_of(record.key)
    if id is None:
        raise InvalidCommand(field, "must not be empty: it is the id of the schedule")
    return id


def id_of(key: bytes | None) -> str | None:
    """Return the id for a key; None if it is empty. A key that is not valid text becomes `base64:` and its base64."""
    if key is None or not key.strip():
        return None
    if not key.startswith(_BASE64_BYTES):
        try:
            return parse_id(key.decode())
        except ValueError:  # UnicodeDecodeError is one
            pass
    return _BASE64 + b64encode(key).decode()


def key_of(id: str) -> bytes:
    """Return the key for an id; the reverse of `id_of`."""
    key = id.encode()
    with suppress(ValueError):
        decoded = b64decode(key.removeprefix(_BASE64_BYTES), validate=True)
        if id_of(decoded) == id:
            return decoded
    return key


def last_headers(headers: Headers, names: Sequence[str]) -> list[bytes] | None:
    """Return the values of the last headers, if these have exactly these names, and all of them a value."""
    last = headers[-len(names) :]
    if [name for name, _ in last] != list(names):
        return None
    values = [value for _, value in last if value is not None]
    return values if len(values) == len(names) else None


def cancel(record: CommandRecord, id: str, tenant: str = DEFAULT_TENANT) -> ControlCommand:
    """Return the command that cancels a schedule."""
    return ControlCommand("cancel", tenant, id, record.key, record.partition, record.offset, record.timestamp)
