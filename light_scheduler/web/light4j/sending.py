"""A task that is sent over HTTP, and its record in the form of light-4j's own endpoint."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from light_scheduler.errors import InvalidCommand
from light_scheduler.web.forms.text_forms import ID, TENANT, TOPIC, described
from light_scheduler.wire import UnsentRecord
from light_scheduler.wire.dialects.light4j_bytes import UNITS

from .documents import TaskFrequency

Action = Literal["INSERT", "UPDATE", "DELETE"]


class TaskBody(msgspec.Struct, frozen=True, kw_only=True):
    """A task to store or to delete. Further members are ignored."""

    host: Annotated[str, described("The tenant.", TENANT)]
    name: Annotated[str, described("The id of the schedule.", ID)]
    action: Annotated[Action, Meta(description="UPDATE and DELETE are for a task that is there.")]
    frequency: TaskFrequency
    topic: Annotated[str, described("Where its messages go.", TOPIC)]
    start: (
        Annotated[
            int, Meta(description="Intervals count from the unit after this one; UTC epoch ms. Default: now.", ge=0)
        ]
        | None
    ) = None
    data: Annotated[dict[str, str], Meta(description="The sender's own.")] | None = None


class Ids(msgspec.Struct, frozen=True):
    """Ids of the schemas of keys and values in a schema registry; None: records are not framed."""

    key: int | None = None
    value: int | None = None


def read_body(body: bytes) -> TaskBody:
    """Return the task of a request. Raises InvalidCommand."""
    try:
        return msgspec.convert(_with_integers(msgspec.json.decode(body)), TaskBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidCommand("body", f"is no task: {error}") from None


def _with_integers(task: Any) -> Any:
    """Return a task with the integers that JSON Schema recognises as such: 2.0 is one."""
    if isinstance(task, dict):
        return {name: _with_integers(member) for name, member in task.items()}
    return int(task) if isinstance(task, float) and task.is_integer() else task


def record_of(body: TaskBody, ids: Ids, now: int) -> UnsentRecord:
    """Return the record of a task that is sent at an instant (UTC epoch ms). Raises InvalidCommand naming the invalid
    member."""
    from light_scheduler.wire.dialects.light4j import task_record
    from light_scheduler.wire.dialects.named import dialect_named

    start, unit = now if body.start is None else body.start, UNITS[body.frequency.time_unit]
    if unit > 1:
        start += unit - start % unit
    task = {
        "host": body.host,
        "name": body.name,
        "action": body.action,
        "frequency": {"timeUnit": body.frequency.time_unit, "time": body.frequency.time},
        "topic": body.topic,
        "start": start,
        "data": body.data,
    }
    key, value = task_record(task, ids.key, ids.value)
    record = UnsentRecord(key, value, timestamp=now)
    dialect_named("light4j").decode(record)
    return record
