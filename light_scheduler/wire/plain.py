"""Fast encoders for records of plain schedules: one-shots in the default tenant without other rules, and tasks, which
repeat at a fixed rate.

The results are byte for byte the same as from `state.encode_entry` and `events.encode_history`, without creating the
values that these need.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from light_scheduler.model import DEFAULT_PRIORITY, DEFAULT_TENANT, Bounds, EventType, HomeKey, Progress
from light_scheduler.model.arrival import offset_of

from .dialect import Plain, PlainTask
from .events import history_key
from .record import CommandRecord
from .state import identity
from .state_format import VERSION

IDENTITY = identity(DEFAULT_TENANT, "")
"""Prefix of their identities. The id follows."""

HISTORY_KEY = history_key(DEFAULT_TENANT, None)
"""Prefix of their history keys. The id follows."""

_encode = msgspec.msgpack.Encoder().encode
_text = msgspec.json.Encoder().encode
_HOME = int(HomeKey.ID)
_HOME_OF_TASK = int(HomeKey.TARGET_KEY)
_NEW_PROGRESS = msgspec.structs.astuple(Progress(0, 0))[2:]


def new_state(record: CommandRecord, id: str, plain: Plain, accepted_at: int) -> bytes:
    """Encode the new schedule of a command, accepted at `accepted_at` (UTC epoch ms)."""
    at, target, payload, headers = plain
    arrival = record.offset
    definition = (
        DEFAULT_TENANT,
        id,
        1,
        ("once", at, False),
        target,
        payload,
        headers,
        record.partition,
        offset_of(arrival),
        accepted_at,
        None,
        DEFAULT_PRIORITY,
        None,
        None,
        None,
        _HOME,
    )
    return VERSION + _encode((definition, (at, arrival, *_NEW_PROGRESS)))


def new_task_state(record: CommandRecord, task: PlainTask, due: int, accepted_at: int) -> bytes:
    """Encode the new task of a command, accepted at `accepted_at` and first due at `due` (UTC epoch ms)."""
    arrival = record.offset
    definition = (
        task.tenant,
        task.id,
        1,
        task.trigger,
        task.target,
        task.payload,
        task.headers,
        record.partition,
        offset_of(arrival),
        accepted_at,
        None,
        DEFAULT_PRIORITY,
        None,
        Bounds(task.start),
        None,
        _HOME_OF_TASK,
    )
    return VERSION + _encode((definition, (due, arrival, *_NEW_PROGRESS)))


def scheduled_lines(now: int, partition: int, tenant: str = DEFAULT_TENANT) -> Callable[[str, int, str], bytes]:
    """Return a function `(id, due in UTC epoch ms, target topic) -> history event` for new schedules of a tenant."""
    ends: dict[str, bytes] = {}
    begin = _begin(EventType.SCHEDULED, tenant)

    def line(id: str, due: int, topic: str) -> bytes:
        end = ends.get(topic)
        if end is None:
            end = ends[topic] = b',"at":%d,"sequence":1,"attempt":1%b' % (now, _end(topic, partition))
        return b'%b%b,"version":1,"due":%d%b' % (begin, _text(id), due, end)

    return line


def fired_lines(
    now: int, partition: int, tenant: str = DEFAULT_TENANT
) -> Callable[[str, int, int, int, int, str], bytes]:
    """Return a function that encodes history events of a tenant's firings.

    Its arguments are id, version, due (UTC epoch ms), sequence, attempt and topic. It is fastest if consecutive firings
    only differ in the id.
    """
    begin = _begin(EventType.FIRED, tenant)
    last: tuple[int, int, int, int, str] | None = None
    rest = b""

    def line(id: str, version: int, due: int, sequence: int, attempt: int, topic: str) -> bytes:
        nonlocal last, rest
        this = version, due, sequence, attempt, topic
        if this != last:
            last = this
            numbers = version, due, now, sequence, attempt
            end = _end(topic, partition)
            rest = b',"version":%d,"due":%d,"at":%d,"sequence":%d,"attempt":%d%b' % (*numbers, end)
        return begin + _text(id) + rest

    return line


def _begin(event: EventType, tenant: str) -> bytes:
    return b'{"event":%b,"tenant":%b,"id":' % (_text(event), _text(tenant))


def _end(topic: str, partition: int) -> bytes:
    return b',"target_topic":%b,"reason":null,"partition":%d}' % (_text(topic), partition)
