"""The records of an event in a worker's transactions, made by the worker's own codecs."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from light_scheduler.engine import Limits, decide
from light_scheduler.model import Entry, Headers
from light_scheduler.settings import Settings
from light_scheduler.wire import firing_headers
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.state import SCHEDULE_KIND, encode_entry, identity

from .workload import Workload

TopicPart = tuple[str, int]
"""(topic, partition)."""

_DEFAULT = Settings()
_LIMITS = Limits(_DEFAULT.max_payload_bytes, _DEFAULT.max_id_bytes)


class Shape(Enum):
    """Records of an event: an acceptance writes state; a firing writes a message and the end of the state."""

    ACCEPTANCE = "acceptance"
    FIRING = "firing"


class BenchRecord(NamedTuple):
    """A record and its destination."""

    partition: TopicPart
    key: bytes | None
    value: bytes | None
    headers: Headers


class _Received(NamedTuple):
    """A command record in the form that a worker reads."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int


class RecordMaker:
    """Makes the records for a workload's schedules, whose commands arrive on a topic."""

    def __init__(self, workload: Workload, commands_topic: str) -> None:
        self._workload = workload
        self._source = commands_topic.encode()

    def records(
        self, shape: Shape, first: int, count: int, *, changelog: TopicPart, target: TopicPart
    ) -> list[BenchRecord]:
        """Return the records of `count` events, from schedule number `first` on. Firings fire when they are due."""
        made: list[BenchRecord] = []
        for entry in self._entries(first, count):
            schedule = entry.schedule
            key = SCHEDULE_KIND + identity(schedule.tenant, schedule.id)
            if shape is Shape.ACCEPTANCE:
                made.append(BenchRecord(changelog, key, encode_entry(entry), []))
            else:
                headers = firing_headers(entry, entry.progress.due, self._source)
                made.append(BenchRecord(target, schedule.target.key, schedule.payload, headers))
                made.append(BenchRecord(changelog, key, None, []))
        return made

    def _entries(self, first: int, count: int) -> list[Entry]:
        due = self._workload.due
        entries = []
        for offset, command in enumerate(self._workload.commands(first, count)):
            received = _Received(*command, partition=0, offset=offset, timestamp=due)
            entry = decide(NATIVE.decode(received), None, due, _LIMITS).entry
            assert entry is not None, "a schedule command leaves a schedule"
            entries.append(entry)
        return entries
