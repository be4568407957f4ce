"""Finds the schedule of a message: from our own headers, or from what another scheduler's dialect adds to a message.

Messages of native schedules name their schedule in our headers. Messages in another scheduler's dialect look as that
scheduler's consumers expect. Most of these dialects name the schedule somehow; `skyuk` does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from light_scheduler.model import Headers
from light_scheduler.wire import dialect_named
from light_scheduler.wire.dialects.compatible import CompatibleDialect
from light_scheduler.wire.fields import CONTROL_PREFIX

TENANT, ID, LANE = ("tenant", "id", "source-partition")
"""The headers that name the schedule of a message, without their prefix."""

_ANY_LANE = re.compile(r"\s*[+-]?[0-9]{1,9}\s*")


class Owner(NamedTuple):
    """The schedule of a message in a dialect of another scheduler.

    Its command is in one of `topics`, in `partition` (None: the message does not name it).
    """

    tenant: str
    id: str
    topics: frozenset[str]
    partition: int | None


@dataclass(frozen=True)
class OtherDialects:
    """Commands topics in dialects of other schedulers: topic -> name of the dialect."""

    topics: Mapping[str, str]

    @classmethod
    def among(cls, inputs: Mapping[str, str]) -> OtherDialects:
        """Select them from commands topics. Raises ConfigurationError if a package that a dialect needs is missing."""
        others = {topic: name for topic, name in inputs.items() if isinstance(dialect_named(name), CompatibleDialect)}
        return cls(others)

    def __bool__(self) -> bool:
        return bool(self.topics)

    def of(self, topic: str) -> CompatibleDialect | None:
        """Return the dialect of a commands topic; None if it is native or JSON."""
        name = self.topics.get(topic)
        return None if name is None else _dialect(name)

    @property
    def all_leave_traces(self) -> bool:
        """Whether messages in all of these dialects name their schedules."""
        return all(_dialect(name).leaves_traces for name in self.topics.values())

    def owner(self, key: bytes | None, value: bytes | None, headers: Headers) -> Owner | None:
        """Return the schedule of a message; None if it is in none of these dialects, or does not name its schedule.

        The scheduler adds its headers last. So if the last headers are of another scheduler's dialect, our headers
        before them were copied by the sender of the command. If only key and value name the schedule, as in `light4j`,
        our headers decide.
        """
        for name in dict.fromkeys(self.topics.values()):
            if (traced := _dialect(name).traced(key, value, headers)) is None:
                continue
            topics = frozenset(topic for topic, dialect in self.topics.items() if dialect == name)
            if traced.topic is not None:
                topics &= {traced.topic}
            elif native_owner(headers) is not None:
                continue
            if topics:
                return Owner(traced.tenant, traced.id, topics, traced.partition)
        return None


NO_OTHERS = OtherDialects({})


def native_owner(headers: Headers) -> tuple[str, str, int] | None:
    """Return tenant, id and lane from our headers of a message; None if they are missing or invalid."""
    named: dict[str, Any] = {name: value for name, value in headers if value is not None}
    tenant, id, lane = (text(named.get(CONTROL_PREFIX + name)) for name in (TENANT, ID, LANE))
    if tenant is None or id is None or lane is None or _ANY_LANE.fullmatch(lane) is None:
        return None
    return tenant, id, int(lane)


def text(value: bytes | None) -> str | None:
    """Return bytes as text; None if they are not UTF-8."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _dialect(name: str) -> CompatibleDialect:
    dialect = dialect_named(name)
    assert isinstance(dialect, CompatibleDialect)
    return dialect
