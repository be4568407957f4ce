"""Decides from topics alone whether a scheduler kept its promises.

It reads commands in log order, and results, messages and dead letters as read_committed consumers see them. It knows
nothing else: it imports nothing of light-scheduler, parses headers itself, and has its own model of a command's
promise, in a few lines for each kind of schedule. Topics of messages and results must have the broker's time
(`message.timestamp.type=LogAppendTime`), since that determines which came first. The scheduler's own time also works
for firings that are staged ahead: it is then the instant of the commit, or an instant after which the commit comes.
"""

from .records import Record
from .verdict import Fault, Kind, Verdict, check, early, wilson_upper

__all__ = ["Fault", "Kind", "Record", "Verdict", "check", "early", "wilson_upper"]
"""The whole interface for a run."""
