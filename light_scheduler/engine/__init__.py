"""Pure decision functions: `(state, command or tick, now) -> decision`. No I/O, no clock, no asyncio.

The same functions are used by the worker, test doubles, dry runs and audits.
"""

from .bulk import check_bulk, concerns, decide_bulk, event_of, result_of
from .command_rates import CommandRates
from .commands import decide
from .decision import Decision, Skipped
from .distribution import distributed
from .fairness import FairQueue
from .firing import Turn, is_plain_turn, take_turn
from .firing_rates import FiringRates
from .firing_rules import FiringRules
from .limits import Limits
from .plain import plain_id, task_due
from .plain_series import plain_step
from .preview import deliveries, first_due_times, preview
from .rate_lending import RateDemand
from .refused_firings import next_try
from .tenants import check_tenant, refusal_of, share_of, shares_under, with_default_target

__all__ = [
    "CommandRates",
    "Decision",
    "FairQueue",
    "FiringRates",
    "FiringRules",
    "Limits",
    "RateDemand",
    "Skipped",
    "Turn",
    "check_bulk",
    "check_tenant",
    "concerns",
    "decide",
    "decide_bulk",
    "deliveries",
    "distributed",
    "event_of",
    "first_due_times",
    "is_plain_turn",
    "next_try",
    "plain_id",
    "plain_step",
    "preview",
    "refusal_of",
    "result_of",
    "share_of",
    "shares_under",
    "take_turn",
    "task_due",
    "with_default_target",
]
