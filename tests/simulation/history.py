"""Histories: what is sent and what goes wrong, when, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.model import EQUAL_SHARES, Shares

from .anew import Anew
from .faults import Fault
from .names import TARGET
from .ruled import Change
from .trouble import Away, Trouble

TENANTS = {"a": "default", "b": "default", "c": "acme", "d": "zeta"}
"""Whose schedule it is, by id."""

SELECTIONS = {"*": "default", "a*": "default", "c*": "acme"}
"""Ids of bulk commands, and their tenants."""

SCHEDULES = ("schedule", "keep", "fail", "invalid")


class Send(NamedTuple):
    """A command: sent `at` (s), due `wait` ms later. `aborted` is None unless it is sent in a transaction."""

    at: float
    partition: int
    kind: str
    id: str
    wait: int
    payload: bytes | None
    aborted: bool | None
    target: str = TARGET


class Growth(NamedTuple):
    """When (s) the commands topic gets more partitions, and how many it has then."""

    at: float
    partitions: int


@dataclass(frozen=True)
class History:
    """One run. `faults` strike when a process reaches a point outside of itself for the n-th time, over all processes;
    `compactions` are times (s). `seed` decides what is left open: delays, and sizes of fetches."""

    seed: int
    machines: int
    partitions: int
    sends: tuple[Send, ...]
    faults: tuple[tuple[int, Fault], ...]
    compactions: tuple[float, ...]
    most: int = MOST
    """Commands, and firings, that a cycle may hold."""
    shares: Shares = EQUAL_SHARES
    stage_ahead_ms: int = 0
    """So long before they are due firings are prepared."""
    trouble: Trouble | None = None
    """What the target `FRAIL` does."""
    away: Away | None = None
    """The partition of the commands topic that takes nothing for a while."""
    anew: Anew | None = None
    """What becomes of the commands topic; None: it stays what it is."""
    changes: tuple[Change, ...] = ()
    """Of the rules of tenants."""
    late_markers: float = 0.0
    """In how many transactions some partitions get the marker seconds after the others."""
    dropped_markers: float = 0.0
    """In how many transactions the changelog gets no marker."""
    growth: Growth | None = None
    topics: tuple[bool, ...] = (True,)
    """Of each commands topic whether workers may write to it, or it is of another scheduler; the topics have equally
    many partitions, which are numbered through."""
    lends: bool = False
    """Whether partitions lend each other room for pending schedules."""
    news_s: float = 3.0
    """How long it takes at most until a process hears which partitions are used."""
    probes: float = 0.0
    """How often (s) each partition is probed; 0: never."""
    clocks: tuple[int, ...] = ()
    """By how much (ms) the clock of each machine is ahead of the brokers'; empty: they are the same."""

    @property
    def is_calm(self) -> bool:
        """Whether nothing goes wrong with processes, requests and transactions."""
        return not (self.faults or self.late_markers or self.dropped_markers)

    @property
    def is_plain(self) -> bool:
        """Whether each command is carried out as soon as it is read, unless something goes wrong."""
        return self.growth is None and not self.changes


class Verdict(NamedTuple):
    """What came of a history: what was wrong, where which faults struck, and how much was delivered."""

    violation: str | None
    struck: frozenset[tuple[str, str]]
    fired: int
    steps: int
