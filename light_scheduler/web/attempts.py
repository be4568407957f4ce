"""How often logins may fail: bounds for each token, for each address, and for all of them. Pure.

Behind a proxy everybody has one address. So logins that succeed do not count, and whoever tries the same wrong token
over and over uses up the attempts of that token only.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

WINDOW_MS = 60_000
MOST_OF_TOKEN = 10
MOST_OF_ADDRESS = 50
MOST_OF_ALL = 100
"""Failures within the window. All of them together are few enough to be remembered one by one."""

Attempt = tuple[int, str, str]
"""When it was (UTC epoch ms), from which address, and with which token."""


class Attempts:
    """The attempts of the last minute that failed, or whose end is not known yet."""

    def __init__(self) -> None:
        self._recent: deque[Attempt] = deque()

    def allow(self, attempt: Attempt) -> bool:
        """Tell whether somebody may try; if so, that counts as a failure until it has succeeded."""
        now, address, token = attempt
        while self._recent and now - self._recent[0][0] >= WINDOW_MS:
            self._recent.popleft()
        own = [other_token for _, other, other_token in self._recent if other == address]
        if own.count(token) >= MOST_OF_TOKEN or len(own) >= MOST_OF_ADDRESS or len(self._recent) >= MOST_OF_ALL:
            return False
        self._recent.append(attempt)
        return True

    def succeeded(self, attempt: Attempt) -> None:
        """Take back what was counted."""
        with suppress(ValueError):  # it took longer than the window
            self._recent.remove(attempt)
