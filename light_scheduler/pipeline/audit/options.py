"""Options of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.model import DelayRule, TopicNames
from light_scheduler.pipeline.job import Cluster


@dataclass(frozen=True)
class Imported:
    """A table that `export` wrote and that was imported into the application; `topics` has new names of topics."""

    table: str
    format: str = "parquet"
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditOptions:
    """Options of an audit. Instants are UTC epoch ms, durations ms.

    `inputs` maps the commands topics to their dialects; `rules` and `limits` are those of the workers. The default of
    `end` is `settle` before now, because newer records may not be visible in every topic yet. A firing is late after
    more than `patience`, counted from when only the scheduler held it up. `targets` are read besides those that the
    history names. With `archive` all records come from that table, up to `settle` before the last history event in it.
    `imported` is the table that the application began with. `page` is the file of the report, `faults` the folder of a
    Parquet table of all faults.

    With `since_last`, the folder of a state (`state.AuditState`), the audit continues where the last one of that state
    ended, or begins with all records; then `start` and `archive` are not allowed.

    With `replays_all`, those schedules too are replayed that could be cleared without: it takes longer, and the report
    is the same.
    """

    cluster: Cluster
    names: TopicNames
    inputs: Mapping[str, str]
    rules: FiringRules
    limits: Limits
    start: int = 0
    end: int | None = None
    patience: int = 60_000
    settle: int = 10_000
    targets: tuple[str, ...] = ()
    archive: str | None = None
    since_last: str | None = None
    imported: Imported | None = None
    page: str | None = None
    faults: str | None = None
    delays: tuple[DelayRule, ...] = ()
    replays_all: bool = False
    clock: Clock = field(default_factory=SystemClock)
