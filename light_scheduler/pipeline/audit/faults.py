"""Faults of deliveries, and the records where they show."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class FaultKind(StrEnum):
    """The kinds of faults, by the names that reports use."""

    MISSING = "missing"
    """Promised, and not delivered."""
    DUPLICATE = "duplicate"
    """Delivered more often than promised."""
    EARLY = "early"
    """Delivered before it was due."""
    LATE = "late"
    """Delivered later than the bound, counted from when only the scheduler was in its way."""
    ALTERED = "altered"
    """Delivered with another payload, key, header or partition than promised."""
    AFTER_CANCEL = "after_cancel"
    """Delivered after a cancel that was accepted."""
    SUPERSEDED = "superseded"
    """Delivered at a time that an accepted update had replaced."""
    UNEXPECTED = "unexpected"
    """Delivered, or in the history, although nothing asked for it."""
    IGNORED = "ignored"
    """A command that had no effect, although it should have had one and later ones of its tenant had theirs."""


class RecordId(NamedTuple):
    """The place of a record."""

    topic: str
    partition: int
    offset: int


class Fault(NamedTuple):
    """A fault of a schedule. `due` and `at` are UTC epoch ms; `place` is the record to look at.

    Of a firing that is missing, it `is_told` if a line of history is about it: that line has the instant `at`. Then it
    is `asked_by` a command, if that is known: before the line was written, the same firing was missing at the place of
    that command.
    """

    kind: FaultKind
    due: int | None
    at: int
    place: RecordId
    detail: str
    is_told: bool = True
    asked_by: RecordId | None = None

    @property
    def told_at(self) -> int | None:
        """When history told of a firing that is missing; None: it did not, or something else is wrong.

        Who hears of a missing firing may send its command again. So this tells the next missing firing from it, which
        can be due at the same time.
        """
        return self.at if self.kind is FaultKind.MISSING and self.is_told else None
