"""How often somebody may try to log in: a bound for each address, and one for all of them. Pure."""

from __future__ import annotations

from collections import deque

WINDOW_MS = 60_000
MOST_OF_ONE = 10
MOST_OF_ALL = 100
"""Attempts within the window. All of them together are few enough to be remembered one by one."""


class Attempts:
    """The attempts of the last minute."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, str]] = deque()

    def allow(self, address: str, now: int) -> bool:
        """Tell whether an address may try now (UTC epoch ms); if so, that is an attempt."""
        while self._recent and now - self._recent[0][0] >= WINDOW_MS:
            self._recent.popleft()
        own = sum(1 for _, other in self._recent if other == address)
        if own >= MOST_OF_ONE or len(self._recent) >= MOST_OF_ALL:
            return False
        self._recent.append((now, address))
        return True
