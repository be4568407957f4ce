"""The pure decisions: `(state, command or tick, now) -> what follows`. No I/O, no clock, no asyncio.

The same functions run in the worker, in test doubles, in dry runs and in audits.
"""

from .commands import Decision, decide
from .firing import FiringDecision, MissedPolicy, decide_firing
from .limits import Limits
from .plain import plain_entry

__all__ = ["Decision", "FiringDecision", "Limits", "MissedPolicy", "decide", "decide_firing", "plain_entry"]
