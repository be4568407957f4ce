"""How many records a delay lane forwards in one transaction: fewer after one that failed for its size, then more."""

from __future__ import annotations

MAX_RECORDS = 5_000


class BatchSize:
    """The largest number of records for the next transaction; transactions end within `timeout_ms`, or fail."""

    def __init__(self, timeout_ms: int) -> None:
        self.most = MAX_RECORDS
        self._quick_ms = timeout_ms // 4

    def failed(self, count: int) -> None:
        """Note that a transaction of `count` records was refused or took too long: the next one has half of them."""
        self.most = max(1, count // 2)

    def committed(self, took_ms: int) -> None:
        """Note how long a commit took. Twice as many are tried only if they can be expected to end well in time."""
        if took_ms < self._quick_ms:
            self.most = min(MAX_RECORDS, 2 * self.most)
