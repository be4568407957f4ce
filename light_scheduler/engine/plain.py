"""Fast paths for the most frequent commands: a new one-shot without other rules, and a new task, which repeats at a
fixed rate.
"""

from __future__ import annotations

from light_scheduler.model import LATEST_INSTANT
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.build import ANY
from light_scheduler.wire.dialect import Plain, PlainTask

from .limits import Limits
from .recurrence import next_of

_LAST_OF_ANY = ord(ANY)
"""The last byte of an id that selects several schedules. In UTF-8, no other character contains this byte."""


def plain_id(record: CommandRecord, plain: Plain, limits: Limits) -> str | None:
    """Return the id of a plain command that `decide` accepts as a new schedule of the default tenant.

    The caller must check that no schedule with this id is pending. None only means that the command must be decided by
    `decide`, which takes twice as long because of the values it creates.
    """
    _, target, payload, _ = plain
    key = record.key
    if not key or target.topic in limits.refused or len(key) > limits.max_id_bytes:
        return None
    if payload is not None and len(payload) > limits.max_payload_bytes:
        return None
    try:
        id = key.decode()
    except UnicodeDecodeError:
        return None
    return id if key[-1] != _LAST_OF_ANY and id.isprintable() else None


def task_due(record: CommandRecord, task: PlainTask, now: int, limits: Limits) -> int | None:
    """Return the first due time (UTC epoch ms) of a task that `decide` accepts as a new schedule.

    The caller must check that no schedule with this id is pending. None means that `decide` must decide the command.
    """
    if not limits.may_aim_at(task.target.topic) or len(task.id) * 4 > limits.max_id_bytes:
        return None
    if len(task.payload) > limits.max_payload_bytes:
        return None
    accepted = record.timestamp
    if not 0 < accepted <= now:
        accepted = now
    due = task.start if task.start >= accepted else next_of(task.trigger, accepted)
    return None if due is None or due > LATEST_INSTANT else due
