"""What strikes a process of a simulation."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """What strikes, and for how long (s) it lasts or how long the process stays away."""

    kind: str
    seconds: float


KINDS = ("kill", "power", "wipe", "freeze", "lose", "stall", "outage", "rebalance", "stop")
"""kill: SIGKILL, restarted on the same disk, without some of what was not flushed. power: without any of that.
wipe: without the disk. freeze: SIGSTOP and SIGCONT. lose: this one request, or its answer, is. stall: it takes long.
outage: all do. rebalance: partitions change hands. stop: the worker leaves in order and comes back."""


class Killed(BaseException):
    """The process is gone; nothing of it runs on. Not an Exception: nobody handles it."""
