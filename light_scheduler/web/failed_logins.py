"""How many failed logins are answered and logged one by one, of each token, of each address, and of all. Pure.

A token that is valid is let in however many others were wrong: they are too long to be guessed. Behind a proxy
everybody has one address, and whoever tries the same wrong token over and over uses up the attempts of that token only.
"""

from __future__ import annotations

from collections import deque

WINDOW_MS = 60_000
MOST_OF_TOKEN = 10
MOST_OF_ADDRESS = 50
MOST_OF_ALL = 100
"""Failures within the window. All of them together are few enough to be remembered one by one."""


class Attempts:
    """The attempts of the last minute that failed."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, str, str]] = deque()

    def failed(self, now: int, address: str, token: str) -> bool:
        """Note a failure (`now` is UTC epoch ms); return whether it is within the bounds. Others are not counted."""
        while self._recent and now - self._recent[0][0] >= WINDOW_MS:
            self._recent.popleft()
        own = [other_token for _, other, other_token in self._recent if other == address]
        if own.count(token) >= MOST_OF_TOKEN or len(own) >= MOST_OF_ADDRESS or len(self._recent) >= MOST_OF_ALL:
            return False
        self._recent.append((now, address, token))
        return True
