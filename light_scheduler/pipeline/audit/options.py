"""What is audited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.model import TopicNames
from light_scheduler.pipeline.job import Cluster


@dataclass(frozen=True)
class Imported:
    """A table that `export` wrote and that was imported into the application; `topics` has new names of topics."""

    table: str
    format: str = "parquet"
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditOptions:
    """What is audited. Instants are UTC epoch ms, durations ms.

    `inputs` maps the commands topics to their dialects; `rules` and `limits` are those of the workers. Without `end` it
    is `settle` before now: what is newer may not be visible in every topic yet. What is later than `patience` is late,
    counted from when only the scheduler was in its way. `targets` are read besides those that history names. With
    `archive` all is read from that table, up to `settle` before the last line of history in it. `imported` is what the
    application began with. `page` is where the report goes, `faults` the folder of a Parquet table of all faults.

    With `since_last`, the folder of a state (`state.AuditState`), the audit continues where the last one of that state
    ended, or begins one with all that there is; then `start` and `archive` are not taken.
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
    clock: Clock = field(default_factory=SystemClock)
