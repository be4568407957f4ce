"""light-scheduler: "deliver this message at T", exactly once, on Kafka.

Importing this package loads neither Faust nor Spark: public names are resolved when they are first used.
`faust -A light_scheduler worker` finds the worker's Faust application as `app`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from light_scheduler.agents.app import SchedulerApp
    from light_scheduler.client import BlockingSchedulerClient, Firing, SchedulerClient
    from light_scheduler.connection import HttpSecurity, KafkaSecurity
    from light_scheduler.model import Outcome, Result

    app: SchedulerApp
    __version__: str

__all__ = [
    "BlockingSchedulerClient",
    "Firing",
    "HttpSecurity",
    "KafkaSecurity",
    "Outcome",
    "Result",
    "SchedulerClient",
    "__version__",
    "app",
]

_HOMES = {
    "BlockingSchedulerClient": "light_scheduler.client",
    "Firing": "light_scheduler.client",
    "HttpSecurity": "light_scheduler.connection",
    "KafkaSecurity": "light_scheduler.connection",
    "Outcome": "light_scheduler.model",
    "Result": "light_scheduler.model",
    "SchedulerClient": "light_scheduler.client",
}


def __getattr__(name: str) -> Any:
    if name == "app":
        from light_scheduler.host.collector import paused

        with paused():
            return import_module("light_scheduler.application").default_app()
    if name == "__version__":
        return import_module("importlib.metadata").version("light-scheduler")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
