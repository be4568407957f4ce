"""Makes fewer and larger transactions while the machine is short of CPUs.

A transaction costs worker and broker some milliseconds, however little it holds. Normally, a lane begins one as soon as
anything is due, for the best punctuality. If its thread waits for a CPU longer than it runs, these transactions are the
cause: then the lane leaves time between their beginnings, in which firings gather. That leaves CPU to others, such as a
starting worker.
"""

from __future__ import annotations

from collections.abc import Callable

CROWDED = 0.5
"""The share of time spent waiting for a CPU above which firings are gathered."""

MOST_MS = 200
STEEPNESS = 4
"""The spacing reaches `MOST_MS` a quarter above `CROWDED`."""

FEW = 250
"""A transaction with fewer firings is small. This many cost as much as the transaction itself."""


def spacing_ms(waits: float) -> int:
    """Return the time (ms) between the beginnings of transactions, given the share of waiting for a CPU."""
    return int(MOST_MS * min(max((waits - CROWDED) * STEEPNESS, 0.0), 1.0))


class Gathering:
    """The spacing of one lane's transactions.

    `waits` returns the share of waiting for a CPU, and `monotonic` a time in seconds.
    """

    def __init__(self, waits: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._waits = waits
        self._monotonic = monotonic
        self._begun = 0.0
        self._held_few = False

    def begin(self) -> None:
        """Note that a transaction begins."""
        self._begun = self._monotonic()
        self._held_few = False

    def ended(self, firings: int) -> None:
        """Note that a transaction with only this many firings was committed, and no work was left over."""
        self._held_few = 0 < firings < FEW

    def left_ms(self) -> int:
        """Return how long (ms) the next transaction should wait. Return 0 if not at all, or when called again."""
        held_few, self._held_few = self._held_few, False
        if not held_few or not (spacing := spacing_ms(self._waits())):
            return 0
        return max(0, spacing - int((self._monotonic() - self._begun) * 1_000))
