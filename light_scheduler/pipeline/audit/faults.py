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
    """A fault of a schedule. `due` and `at` are UTC epoch ms; `place` is the record to look at."""

    kind: FaultKind
    due: int | None
    at: int
    place: RecordId
    detail: str
