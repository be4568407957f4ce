"""Fewer and larger transactions while the machine is short of processors.

A transaction costs worker and broker some milliseconds, however little it holds. Without need, a lane begins one as
soon as anything is due, which is most punctual. On a machine where its thread waits for a processor for longer than it
runs, these transactions are what it waits for: then the lane leaves time between their beginnings, in which firings
gather. That leaves processors to others, such as a worker that starts.
"""

from __future__ import annotations

from collections.abc import Callable

CROWDED = 0.5
"""The share of waiting for a processor from which on firings are gathered."""

MOST_MS = 200
STEEPNESS = 4
"""All of `MOST_MS` is left between transactions from a quarter above `CROWDED` on."""

FEW = 250
"""Firings of a small transaction: so many cost as much as the transaction itself."""


def spacing_ms(waits: float) -> int:
    """Return what is to lie between the beginnings of transactions, by the share of waiting for a processor."""
    return int(MOST_MS * min(max((waits - CROWDED) * STEEPNESS, 0.0), 1.0))


class Gathering:
    """Of one lane. `waits` is the share of waiting for a processor, `monotonic` in seconds."""

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
        """Note that a transaction of nothing but so many firings is committed, and left nothing over."""
        self._held_few = 0 < firings < FEW

    def left_ms(self) -> int:
        """Return for how long the next transaction had better wait; 0: not at all, as when asked again."""
        held_few, self._held_few = self._held_few, False
        if not held_few or not (spacing := spacing_ms(self._waits())):
            return 0
        return max(0, spacing - int((self._monotonic() - self._begun) * 1_000))
