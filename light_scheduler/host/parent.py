"""Ends this process when its parent ends, even if the parent is killed.

The parent holds the other end of this process's standard input, which closes when the parent ends or is killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from threading import Thread


def when_parent_ends(act: Callable[[], None]) -> None:
    """Call `act`, in its own thread, when standard input ends."""
    Thread(target=_follow, args=(sys.stdin.fileno(), act), name="waits for the parent's end", daemon=True).start()


def _follow(stdin: int, act: Callable[[], None]) -> None:
    while os.read(stdin, 1):
        pass
    act()
