"""Options of a load."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.pipeline.job import Cluster


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of a load.

    `refused` is the path of a Parquet table for refused rows; those of new versions of a Delta table are added to it.
    `constants` are fields with the same value for all rows, `ignored` are columns to skip. Marks are stored in
    `marks_topic` under `name`: under another name the same rows are loaded again. With `sends_past`, one-shots whose
    time has passed are sent even if they may have been sent before. With `cancels_deleted`, schedules are cancelled if
    their rows were deleted from a Delta table since its last load. With `dry_run`, rows are only validated.

    With `every_s`, the load is continuous: until `stop` is set, it looks for new versions or files at this interval
    (s), and adds to the table of refused rows. A stream of files stores its position in `checkpoint`, or else in
    Spark's configured folder for checkpoints; without either, the next load reads all files again.
    """

    table: str
    cluster: Cluster
    commands_topic: str
    marks_topic: str
    format: str = "parquet"
    refused: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    reading: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = NO_LIMITS
    name: str = "light-scheduler-load"
    sends_past: bool = False
    cancels_deleted: bool = False
    dry_run: bool = False
    every_s: float | None = None
    checkpoint: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def follows_files(self) -> bool:
        """Whether the load is continuous, with a stream of files."""
        return self.every_s is not None and self.format != "delta"

    @property
    def scope(self) -> tuple[Any, ...]:
        """The scope of marks, as in `LoadTask`."""
        return self.name, self.commands_topic, sorted(self.constants.items())
