"""How many records a delay lane forwards in one transaction: fewer after one that was too large, then gradually
more."""

from __future__ import annotations

MAX_RECORDS = 5_000


class BatchSize:
    """The maximum number of records in the next transaction. Transactions fail unless they end within `timeout_ms`."""

    def __init__(self, timeout_ms: int) -> None:
        self.most = MAX_RECORDS
        self._quick_ms = timeout_ms // 4

    def failed(self, count: int) -> None:
        """Record that a transaction of `count` records was refused or took too long: the next one has half of them."""
        self.most = max(1, count // 2)

    def committed(self, took_ms: int) -> None:
        """Record how long a commit took. The size is doubled only if such a transaction should end well in time."""
        if took_ms < self._quick_ms:
            self.most = min(MAX_RECORDS, 2 * self.most)
