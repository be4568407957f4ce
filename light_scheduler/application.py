"""The assembled application: lanes, agents and web on one Faust app."""

from __future__ import annotations

from functools import cache

from light_scheduler import web
from light_scheduler.agents import DueTimer, attach_command_agents
from light_scheduler.clock import Clock
from light_scheduler.delays import Delays
from light_scheduler.settings import Settings, load_settings
from light_scheduler.worker.app import SchedulerApp, create_app


def build(settings: Settings, clock: Clock | None = None) -> SchedulerApp:
    """Put a worker's application together, by default with the machine's clock.

    Raises ConfigurationError for a dialect that does not exist.
    """
    app = create_app(settings, DueTimer, clock, **web.faust_options(settings))
    attach_command_agents(app, settings)
    delays = Delays(settings, app.clock)
    app.add_dependency(delays)
    peers = web.AssignedPeers(app)
    web.attach(app, lanes=app.lanes, delays=delays, peers=peers, settings=settings, clock=app.clock)
    return app


@cache
def default_app() -> SchedulerApp:
    """Return what `faust -A light_scheduler worker` runs: settings from the environment and the settings file."""
    return build(load_settings())
