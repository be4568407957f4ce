"""Refused rows by kind, with the first of each, for the summary of a dry run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

MOST_SHOWN = 10
"""Number of rows that are shown of a kind."""

MOST_KINDS = 20
"""Number of kinds that are shown: those with the most rows."""

_VALUES = "'[^']*'|\"[^\"]*\"|[0-9]+"


@dataclass(frozen=True)
class RefusedRow:
    """The place of a refused row, as in the table of refused rows, and the reason."""

    file: str
    block: int
    row: int
    reason: str

    def line(self) -> str:
        piece = f" of the piece at byte {self.block:,}" if self.block else ""
        return f"  row {self.row:,}{piece} in {PurePosixPath(unquote(self.file)).name}: {self.reason}"


@dataclass(frozen=True)
class RefusedKind:
    """Rows whose field is refused for the same reason, ignoring values, and the first of them."""

    field: str
    rows: int
    first: Sequence[RefusedRow]

    def lines(self) -> Iterator[str]:
        shown = "" if self.rows <= len(self.first) else f", the first {len(self.first)} of them"
        yield f"{self.rows:,} rows refused because of {self.field}{shown}:"
        yield from (row.line() for row in self.first)


def refused_kinds(report: DataFrame) -> list[RefusedKind]:
    """Return the kinds of refusals in the tasks' reports, those with the most rows first."""
    kind = ["field", "kind"]
    of_kind = F.regexp_replace("reason", _VALUES, "*").alias("kind")
    refused = report.where("reason is not null").select("file", "block", "row", "field", "reason", of_kind)
    most = refused.groupBy(*kind).agg(F.count("*").alias("rows")).orderBy(F.desc("rows"), *kind).limit(MOST_KINDS)
    in_order = Window.partitionBy(*kind).orderBy("file", "block", "row")
    first = refused.withColumn("place", F.row_number().over(in_order)).where(F.col("place") <= MOST_SHOWN)
    shown = first.join(F.broadcast(most), kind).orderBy(F.desc("rows"), *kind, "place").collect()
    found: dict[tuple[str, str], tuple[int, list[RefusedRow]]] = {}
    for row in shown:
        _, rows = found.setdefault((row.field, row.kind), (row.rows, []))
        rows.append(RefusedRow(row.file, row.block, row.row, row.reason))
    return [RefusedKind(field, number, rows) for (field, _), (number, rows) in found.items()]
