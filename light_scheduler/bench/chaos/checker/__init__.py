"""Decides from topics alone whether a scheduler kept its promises.

It reads commands in log order and what read_committed consumers see of results, messages and dead letters, and knows
nothing else: it imports nothing of light-scheduler, reads headers itself, and has its own model, a few lines for
each kind of schedule, of what a command promises. Topics of messages and results have to carry the broker's time
(`message.timestamp.type=LogAppendTime`): by it is judged what came first. A topic that has the scheduler's time
serves as well for what is prepared ahead: that is then the instant of the commit, or none before it.
"""

from .records import Record
from .verdict import Fault, Kind, Verdict, check, early, wilson_upper

__all__ = ["Fault", "Kind", "Record", "Verdict", "check", "early", "wilson_upper"]
"""Everything that a run needs of it."""
