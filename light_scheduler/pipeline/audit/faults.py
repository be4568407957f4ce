"""What can be wrong with a delivery, and where to look."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class FaultKind(StrEnum):
    """What is wrong. The text is what reports call it."""

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
    """Delivered as an accepted update had it no more."""
    UNEXPECTED = "unexpected"
    """Delivered, or told by history, although nothing asked for it."""
    IGNORED = "ignored"
    """A command that should have had an effect, and had none although later ones had."""


class RecordId(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


class Fault(NamedTuple):
    """One thing that is wrong with a schedule. `due` and `at` are UTC epoch ms; `place` is the record to look at."""

    kind: FaultKind
    due: int | None
    at: int
    place: RecordId
    detail: str
