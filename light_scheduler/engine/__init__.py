"""The pure decisions: `(state, command or tick, now) -> what follows`. No I/O, no clock, no asyncio.

The same functions run in the worker, in test doubles, in dry runs and in audits.
"""

from .commands import decide
from .decision import Decision
from .fairness import FairQueue
from .firing import FiringRules, Skipped, Turn, next_try, take_turn
from .limits import Limits
from .plain import plain_entry
from .preview import due_times, preview
from .sweep import check_for_many, concerns, decide_one_of_many, event_of, result_of
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
    "check_for_many",
    "concerns",
    "decide",
    "decide_one_of_many",
    "due_times",
    "event_of",
    "next_try",
    "plain_entry",
    "preview",
    "result_of",
    "take_turn",
]
