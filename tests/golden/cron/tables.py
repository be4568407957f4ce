"""The golden tables: when each expression fires by its original, in some zones, from some instants on.

A table is JSON, compressed. Times are whole seconds; the first of a row is counted from its start (rounded down), each
other from the one before it.
"""

from __future__ import annotations

import json
import lzma
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

import msgspec

from light_scheduler.engine.cron import CronDialect, CronError, compile_cron

FOLDER = Path(__file__).parent
DIALECTS: tuple[CronDialect, ...] = ("unix", "cron4j", "quartz", "spring")


class Table(msgspec.Struct, frozen=True):
    """What one original answered."""

    original: str
    count: int
    """How many times were asked for."""
    zones: list[str]
    starts: list[int]
    """Epoch ms."""
    answers: dict[str, list[list[int]] | Literal["refused", "endless"]]
    """By expression: rows of epoch s for each zone and in it each start, or that it was refused or had no end."""


def path_of(dialect: CronDialect) -> Path:
    return FOLDER / f"{dialect}.json.xz"


def load(dialect: CronDialect) -> Table:
    table = msgspec.json.decode(lzma.decompress(path_of(dialect).read_bytes()), type=Table)
    for rows in table.answers.values():
        if not isinstance(rows, str):
            for index, row in enumerate(rows):
                start = table.starts[index % len(table.starts)] // 1000
                row[:] = list(accumulate(row, initial=start))[1:]
    return table


def save(dialect: CronDialect, table: Table) -> None:
    document = msgspec.to_builtins(table)
    for rows in document["answers"].values():
        if not isinstance(rows, str):
            for index, row in enumerate(rows):
                start = table.starts[index % len(table.starts)] // 1000
                row[:] = [after - before for before, after in pairwise([start, *row])]
    path_of(dialect).write_bytes(lzma.compress(json.dumps(document, separators=(",", ":")).encode(), preset=9))


class Difference(msgspec.Struct, frozen=True, array_like=True):
    """One answer that differs. Without zone and start it is about whether the expression is accepted."""

    expression: str
    zone: str | None = None
    start: int | None = None


def differences(dialect: CronDialect, table: Table) -> dict[Difference, tuple[list[int], list[int]]]:
    """Return all answers that differ, with the original's times and ours."""
    found: dict[Difference, tuple[list[int], list[int]]] = {}
    for expression, rows in table.answers.items():
        try:
            compile_cron(expression, dialect)
            accepted = True
        except CronError:
            accepted = False
        if isinstance(rows, str) or not accepted:
            if accepted or rows != "refused":
                found[Difference(expression)] = ([], [])
            continue
        for index, row in enumerate(rows):
            zone, start = table.zones[index // len(table.starts)], table.starts[index % len(table.starts)]
            ours = next_times(expression, dialect, zone, start, table.count)
            if ours != row:
                found[Difference(expression, zone, start)] = (row, ours)
    return found


def next_times(expression: str, dialect: CronDialect, zone: str, start: int, count: int) -> list[int]:
    """Return our next times (epoch s)."""
    cron = compile_cron(expression, dialect, zone)
    times: list[int] = []
    at: int | None = start
    while at is not None and len(times) < count:
        at = cron.next_after(at)
        if at is not None:
            times.append(at // 1000)
    return times
