"""Delayed topics: rules that forward every record of a topic to another one, a fixed time after its timestamp.

`Delays` runs in every worker. It follows the rules (`stored_rules`), shares the partitions of their sources with other
workers (`membership`), and has a lane for each rule and partition (`lane`). A lane continues at its stored position
(`positions`), and builds the records of its transactions with `writes`.
"""

from typing import TYPE_CHECKING

from light_scheduler.lazy_names import lazy_names

if TYPE_CHECKING:
    from .service import Delays, RuleFromConfigurationError
    from .status import DelayLaneStatus, DelayView

__all__ = ["DelayLaneStatus", "DelayView", "Delays", "RuleFromConfigurationError"]

__getattr__ = lazy_names(
    __name__,
    {
        "service": (
            "Delays",
            "RuleFromConfigurationError",
        ),
        "status": (
            "DelayLaneStatus",
            "DelayView",
        ),
    },
)
