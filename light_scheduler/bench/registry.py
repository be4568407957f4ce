"""The scenarios by name, without importing them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scenario import Scenario

# Scenario -> (module in `scenarios`, what it measures).
SCENARIOS = {
    "ingest": ("ingest", "How fast a worker accepts schedules that wait in its commands topic."),
    "burst": ("burst", "How fast a worker fires schedules that are all due at one instant."),
    "steady": ("steady", "How late a worker fires schedules that are due at a steady rate."),
    "fair": ("fair", "How late one tenant's steady firings are while another has a burst due at one instant."),
    "recurring": ("recurring", "Whether a worker keeps up with cron schedules that all fire each minute."),
    "chaos": ("chaos", "Whether any promise is broken while workers, broker, network and disk fail at random."),
    "backlog": ("backlog", "How fast a worker fires a burst while many others are pending."),
    "scan-cost": ("scan_cost", "How the rate of firing depends on how many others are pending."),
    "update-cost": (
        "update_cost",
        "How accepting and replacing schedules depend on how many others are pending.",
    ),
    "recovery": ("recovery", "How soon a worker fires after a restart, and how fast it rebuilds lost state."),
    "peers": ("peers", "How other schedulers compare with this one. In a clone only; installs them, which takes long."),
    "memory": ("memory", "How much memory and disk pending schedules take, and how much an idle worker."),
}


def scenario_named(name: str) -> Scenario:
    """Return a scenario. Raises KeyError for a name that is not in SCENARIOS."""
    module, _ = SCENARIOS[name]
    scenario: Scenario = import_module(f"{__package__}.scenarios.{module}").SCENARIO
    return scenario
