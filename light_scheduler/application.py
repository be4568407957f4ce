"""The assembled application: lanes, agents and web on one Faust app."""

from __future__ import annotations

from functools import cache

import click

from light_scheduler import web
from light_scheduler.agents import DueTimer, attach_command_agents
from light_scheduler.agents.app import SchedulerApp, create_app
from light_scheduler.agents.karafka_states import KarafkaStates
from light_scheduler.clock import Clock
from light_scheduler.delays import Delays
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import Settings, load_settings


def build(settings: Settings, clock: Clock | None = None) -> SchedulerApp:
    """Put a worker's application together, by default with the machine's clock.

    Raises ConfigurationError for a dialect that does not exist.
    """
    app = create_app(settings, DueTimer, clock, **web.faust_options(settings))
    attach_command_agents(app, settings)
    delays = Delays(settings, app.clock)
    app.add_dependency(delays)
    karafka = [source.name for source in settings.inputs if source.dialect == "karafka"]
    if karafka:
        app.add_dependency(KarafkaStates(lambda: app.lanes, karafka, settings.bootstrap_servers, app.clock))
    peers = web.AssignedPeers(app)
    web.attach(app, lanes=app.lanes, delays=delays, peers=peers, settings=settings, clock=app.clock)
    return app


class WrongSettings(ConfigurationError, click.ClickException):
    """A bad setting under `faust -A light_scheduler`, whose command line prints it and exits with 2."""

    exit_code = 2

    def __init__(self, setting: str, reason: str) -> None:
        ConfigurationError.__init__(self, setting, reason)
        click.ClickException.__init__(self, str(self))


@cache
def default_app() -> SchedulerApp:
    """Return what `faust -A light_scheduler worker` runs: settings from the environment and the settings file."""
    try:
        return build(load_settings())
    except ConfigurationError as error:
        raise WrongSettings(error.setting, error.reason) from error
