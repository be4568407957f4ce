"""A fast path for the most frequent commands in the JSON form: a one-shot without other rules.

    {"trigger": {"at": 1767225600000},
     "target": {"topic": "...", "key": "...", "headers": {"name": "value"}},
     "payload": {"text": "..."} | {"json": ...} | {"base64": "..."} | null,
     "id": "the record's key", "command": "schedule"}

Only `trigger` and `target.topic` are required. Commands with other members are left to `json_commands`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from light_scheduler.model import Headers, Target

from .content_type import CONTENT_TYPE, is_json_command
from .dialect import Plain
from .fields import CONTROL_PREFIX, parse_base64, parse_topic
from .json_values import check
from .record import CommandRecord

_DIGITS = 13
"""Digits of an instant in ms from the years 2001 to 2286. Every number with this many digits is valid."""


class _Trigger(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    at: Raw


class _Target(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    topic: str
    key: str | UnsetType = UNSET
    headers: dict[str, str | None] | None = None


class _Payload(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    text: str | UnsetType = UNSET
    json: Raw | UnsetType = UNSET
    base64: str | UnsetType = UNSET


class _Schedule(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    trigger: _Trigger
    target: _Target
    payload: _Payload | UnsetType | None = UNSET
    id: str | UnsetType = UNSET
    command: Literal["schedule"] = "schedule"


_decode = msgspec.json.Decoder(_Schedule).decode


def plain_json(record: CommandRecord) -> Plain | None:
    """Read a record; see `Dialect.plain`."""
    value, key = record.value, record.key
    if value is None:
        return None
    try:
        given = _decode(value)
        at = bytes(given.trigger.at)
        if len(at) != _DIGITS or not at.isdigit() or at < b"1":
            return None
        if given.id is not UNSET and (key is None or given.id.encode() != key):
            return None
        target = given.target
        headers = _headers(target.headers, record)
        if headers is None:
            return None
        topic = parse_topic(target.topic)
        payload = None if given.payload is None else _payload(given.payload)
    except (ValueError, RecursionError):  # errors of msgspec and of UTF-8 are among them
        return None
    return int(at), Target(topic, key if target.key is UNSET else target.key.encode()), payload, headers


def _headers(given: dict[str, str | None] | None, record: CommandRecord) -> Headers | None:
    """Return the message's headers; None if one has the scheduler's prefix."""
    headers: Headers = []
    if given:
        for name, text in given.items():
            if name.startswith(CONTROL_PREFIX):
                return None
            headers.append((name, None if text is None else text.encode()))
    for header in record.headers:
        if header[0].startswith(CONTROL_PREFIX):
            return None
        if header[0] != CONTENT_TYPE or not is_json_command(header[1]):
            headers.append(header)
    return headers


def _payload(given: _Payload | UnsetType) -> bytes:
    """Return a payload with at most one form. Raises ValueError."""
    if given is UNSET:
        return b""
    text, json, base64 = given.text, given.json, given.base64
    if base64 is not UNSET and text is UNSET and json is UNSET:
        return parse_base64(base64)
    if text is not UNSET and json is UNSET and base64 is UNSET:
        return text.encode()
    if json is UNSET or text is not UNSET or base64 is not UNSET:
        raise ValueError("has not one form")
    payload = bytes(json)
    check(payload)  # the decoder has only skipped its bytes, which are passed on unchanged
    return payload
