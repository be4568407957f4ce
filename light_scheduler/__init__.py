"""light-scheduler: "deliver this message at T", exactly once, on Kafka.

Importing this package loads neither Faust nor Spark: every public name is resolved when it is first used.
`faust -A light_scheduler worker` finds the worker's Faust application under the name `app`.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from light_scheduler.client import SchedulerClient
    from light_scheduler.model import Firing, Outcome, Result
    from light_scheduler.worker.app import SchedulerApp

    app: SchedulerApp

__all__ = ["Firing", "Outcome", "Result", "SchedulerClient", "__version__", "app"]

__version__ = metadata.version("light-scheduler")

_HOMES = {
    "Firing": "light_scheduler.model",
    "Outcome": "light_scheduler.model",
    "Result": "light_scheduler.model",
    "SchedulerClient": "light_scheduler.client",
}


def __getattr__(name: str) -> Any:
    if name == "app":
        return import_module("light_scheduler.application").default_app()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
