"""The most frequent command by far, decided in one step: a new schedule of one instant, with nothing but its target."""

from __future__ import annotations

from light_scheduler.model import (
    DEFAULT_TENANT,
    Entry,
    Headers,
    Once,
    Progress,
    Schedule,
    Target,
)
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.build import ANY
from light_scheduler.wire.fields import CONTROL_PREFIX, parse_topic
from light_scheduler.wire.json_form import CONTENT_TYPE, is_json_command
from light_scheduler.wire.native import header_name
from light_scheduler.wire.state import identity

from .limits import Limits

_AT = header_name("at")
_TARGET_TOPIC = header_name("target-topic")
_IDENTITY = identity(DEFAULT_TENANT, "")
_DIGITS = 13
"""Of an instant in ms from the years 2001 to 2286: whatever so many digits can write is legal."""


def plain_entry(record: CommandRecord, now: int, limits: Limits) -> tuple[bytes, Entry] | None:
    """Return the identity (`wire.state`) that a plain native command names, and what `decide` makes of it.

    Plain is: `at` in ms, `target-topic`, the key for an id, nothing to reject, and nothing of its id pending, which is
    for the caller to see. None says no more than that a command has to go the general way, which takes twice as long
    for the values that it makes in between.
    """
    at = topic = None
    user: Headers = []
    try:
        for header in record.headers:
            name, value = header
            if name == _AT:
                if at is not None or value is None or len(value) != _DIGITS or not value.isdigit() or value < b"1":
                    return None
                at = int(value)
            elif name == _TARGET_TOPIC:
                if topic is not None or value is None:
                    return None
                topic = parse_topic(value.decode())
            elif name.startswith(CONTROL_PREFIX) or (name == CONTENT_TYPE and is_json_command(value)):
                return None
            else:
                user.append(header)
        key, payload = record.key, record.value
        if at is None or topic is None or not key or not limits.may_aim_at(topic):
            return None
        id = key.decode()
    except ValueError:  # UnicodeDecodeError is one
        return None
    if not id.isprintable() or id.endswith(ANY) or len(key) > limits.max_id_bytes:
        return None
    if payload is not None and len(payload) > limits.max_payload_bytes:
        return None
    return _IDENTITY + key, Entry(
        Schedule(
            DEFAULT_TENANT,
            id,
            1,
            Once(at),
            Target(topic, key),
            payload,
            user,
            record.partition,
            record.offset,
            now,
        ),
        Progress(at, record.offset),
    )
