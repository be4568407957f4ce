"""What one lane's schedule is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from light_scheduler.model import Command, Entry
from light_scheduler.wire.dialects.compatible import CompatibleDialect

from .found import DeadLetters, MessagesByName
from .promises import HistoryRecord, Refused
from .standing import Series
from .traced import TracedMessages


class History(Protocol):
    """Lines of history; `unreadable` counts those that had to be passed over so far."""

    unreadable: int

    def __iter__(self) -> Iterator[HistoryRecord]: ...


class Case(NamedTuple):
    """All records about one schedule of one lane, each kind in the order of its log; `recorded` can be read once.

    `passed_on` are offsets of commands of which another lane has copies, `rejected_elsewhere` is whether other lanes
    have dead letters of commands. `imported` is the schedule as it was pending
    when the application began, or at the end of the previous audit, and `series` its series then.

    `dialect` is that of another scheduler, if its commands have one, and `traced` are messages in such dialects.
    `is_partial`: commands may be gone that later ones have followed. `is_unknown`: there is no command, and there may
    have been one in such a dialect.
    """

    asked: Sequence[Command]
    refused: Sequence[Refused]
    recorded: History
    messages: MessagesByName
    dead_letters: DeadLetters
    commands_topic: str
    passed_on: AbstractSet[int] = frozenset()
    whole_since: int = 0
    unreadable: int = 0
    imported: Entry | None = None
    series: Series | None = None
    rejected_elsewhere: bool = False
    traced: TracedMessages | None = None
    dialect: CompatibleDialect | None = None
    is_partial: bool = False
    is_unknown: bool = False
