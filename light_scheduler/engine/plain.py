"""The most frequent command by far, decided in one step: a new schedule of one instant, with nothing but its target."""

from __future__ import annotations

from light_scheduler.model import (
    DEFAULT_TENANT,
    Entry,
    HomeKey,
    Once,
    Progress,
    Schedule,
)
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.build import ANY
from light_scheduler.wire.dialect import Plain
from light_scheduler.wire.state import identity

from .limits import Limits

_IDENTITY = identity(DEFAULT_TENANT, "")


def plain_entry(record: CommandRecord, plain: Plain, now: int, limits: Limits) -> tuple[bytes, Entry] | None:
    """Return the identity (`wire.state`) that a plain command names, and what `decide` makes of it.

    Nothing of its id is pending, which is for the caller to see. None says no more than that the command has to go the
    general way, which takes twice as long for the values that it makes in between.
    """
    at, target, payload, headers = plain
    key = record.key
    if not key or not limits.may_aim_at(target.topic) or len(key) > limits.max_id_bytes:
        return None
    if payload is not None and len(payload) > limits.max_payload_bytes:
        return None
    try:
        id = key.decode()
    except UnicodeDecodeError:
        return None
    if not id.isprintable() or id.endswith(ANY):
        return None
    return _IDENTITY + key, Entry(
        Schedule(
            DEFAULT_TENANT,
            id,
            1,
            Once(at),
            target,
            payload,
            headers,
            record.partition,
            record.offset,
            now,
            home_key=HomeKey.ID,
        ),
        Progress(at, record.offset),
    )
