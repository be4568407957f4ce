"""The summary of a load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .refusals import RefusedKind


@dataclass(frozen=True)
class LoadSummary:
    """The number of rows, of those written by this run and by earlier ones, and of refused rows.

    `repeated_ids` is the number of rows with the id of another row of this load: of the rows with one id, one is
    scheduled. `kinds` are the refusals that a dry run shows. `bytes` is the size of the keys and values of the rows
    that were not refused. `cancelled` is the number of schedules that this run cancelled because their rows were
    deleted.
    """

    rows: int
    sent: int
    sent_before: int
    refused: int
    refused_table: str | None
    repeated_ids: int = 0
    kinds: Sequence[RefusedKind] = ()
    bytes: int = field(default=0, compare=False)
    cancelled: int = 0

    @property
    def failed(self) -> bool:
        return self.refused > 0

    def plus(self, other: LoadSummary) -> LoadSummary:
        """Return the sum of two summaries of the same load."""
        return LoadSummary(
            self.rows + other.rows,
            self.sent + other.sent,
            self.sent_before + other.sent_before,
            self.refused + other.refused,
            self.refused_table,
            self.repeated_ids + other.repeated_ids,
            (*self.kinds, *other.kinds),
            self.bytes + other.bytes,
            self.cancelled + other.cancelled,
        )

    def lines(self) -> list[str]:
        lines = [f"{self.rows:,} rows: {self.sent:,} sent, {self.sent_before:,} sent before, {self.refused:,} refused"]
        if self.cancelled:
            lines.append(f"{self.cancelled:,} schedules cancelled: their rows were deleted")
        if self.repeated_ids:
            lines.append(
                f"{self.repeated_ids:,} rows have the id of another row: only one row of each id stays scheduled"
            )
        lines += [line for kind in self.kinds for line in kind.lines()]
        if self.refused and self.refused_table:
            lines.append(f"Refused rows with their reasons: {self.refused_table}")
        elif self.refused:
            lines.append(
                "To see the refused rows with their reasons, run the load again with --refused: no row is sent twice"
            )
        return lines
