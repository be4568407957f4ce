"""How many failed logins are answered and logged individually, by token, by address, and in total. Pure.

A valid token is always accepted, however many wrong ones came before: tokens are too long to guess. Behind a proxy
everyone has the same address, so repeating one wrong token only uses up the attempts of that token.
"""

from __future__ import annotations

from collections import deque

WINDOW_MS = 60_000
MOST_OF_TOKEN = 10
MOST_OF_ADDRESS = 50
MOST_OF_ALL = 100
"""Maximum numbers of failures within the window. The total is small enough to remember each failure."""


class Attempts:
    """The failed attempts of the last minute."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, str, str]] = deque()

    def failed(self, now: int, address: str, token: str) -> bool:
        """Note a failure (`now` is UTC epoch ms). Return whether it is within the limits; others are not counted."""
        while self._recent and now - self._recent[0][0] >= WINDOW_MS:
            self._recent.popleft()
        own = [other_token for _, other, other_token in self._recent if other == address]
        if own.count(token) >= MOST_OF_TOKEN or len(own) >= MOST_OF_ADDRESS or len(self._recent) >= MOST_OF_ALL:
            return False
        self._recent.append((now, address, token))
        return True
