"""The pure decisions: `(state, command or tick, now) -> what follows`. No I/O, no clock, no asyncio.

The same functions run in the worker, in test doubles, in dry runs and in audits.
"""

from .commands import decide
from .decision import Decision
from .fairness import FairQueue
from .firing import FiringRules, Skipped, Turn, take_turn
from .limits import Limits
from .plain import plain_entry
from .preview import preview
from .throttle import ALL, Throttle

__all__ = [
    "ALL",
    "Decision",
    "FairQueue",
    "FiringRules",
    "Limits",
    "Skipped",
    "Throttle",
    "Turn",
    "decide",
    "plain_entry",
    "preview",
    "take_turn",
]
