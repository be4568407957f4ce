"""Assembles the application of a worker: lanes, agents and web on one Faust app."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from light_scheduler import web
from light_scheduler.access.service import AccessService
from light_scheduler.agents import DueTimer, attach_command_agents
from light_scheduler.agents.app import SchedulerApp, create_app
from light_scheduler.agents.assigned_peers import AssignedPeers
from light_scheduler.agents.services.forecast import Forecast
from light_scheduler.agents.services.karafka_states import KarafkaStates
from light_scheduler.agents.services.probes import Probes
from light_scheduler.agents.web_server import WebServer, web_options
from light_scheduler.clock import Clock, SystemClock
from light_scheduler.delays import Delays
from light_scheduler.doctor.check import Check
from light_scheduler.errors import ConfigurationError
from light_scheduler.processes import Process
from light_scheduler.settings import Settings, load_settings
from light_scheduler.tenants.service import TenantService

if TYPE_CHECKING:
    from light_scheduler.access.oidc import Oidc


def build(
    settings: Settings,
    clock: Clock | None = None,
    *,
    process: Process | None = None,
    shared: Sequence[socket.socket] = (),
) -> SchedulerApp:
    """Create the application of a worker, by default with the machine's clock.

    `process` is the process of a node that it runs in, and `shared` are the listening sockets of all its processes.
    Raises ConfigurationError for an unknown dialect.
    """
    clock = clock or SystemClock()
    access = AccessService(settings.connection, settings.topics, clock, _oidc(settings))
    tenants = TenantService(settings.connection, settings.topics, clock)
    options = web_options(settings, web.largest_body(settings))

    def secret() -> bytes | None:
        return access.book.peer_secret

    app = create_app(settings, DueTimer, clock, secret, tenants, process, **options)
    attach_command_agents(app, settings)
    delays = Delays(settings, app.clock)
    app.add_dependency(delays)
    karafka = [source.name for source in settings.inputs if source.dialect == "karafka"]
    if karafka:
        app.add_dependency(KarafkaStates(lambda: app.lanes, karafka, settings.connection, app.clock))
    app.add_dependency(Forecast(lambda: app.lanes, settings.topics.forecast, settings.connection, app.clock))
    if settings.probe_interval:
        app.add_dependency(Probes(lambda: app.lanes, settings.connection, settings.probe_interval, app.clock, secret))
    app.add_dependency(access)
    app.add_dependency(tenants)
    peers = AssignedPeers(app)
    worker = web.Worker(
        lanes=app.lanes,
        delays=delays,
        peers=peers,
        kafka=web.topics_of(settings, peers),
        settings=settings,
        clock=app.clock,
        access=access,
        tenants=tenants.store,
        examine=partial(_examined, settings),
        process=process,
        exchange=app.exchange,
    )
    web.attach(WebServer(app), worker, shared)
    return app


def _oidc(settings: Settings) -> Oidc | None:
    if settings.oidc is None:
        return None
    from light_scheduler.access.oidc import Oidc  # imports cryptography, which takes a tenth of a worker's start

    return Oidc(settings.oidc)


def _examined(settings: Settings, info: Mapping[str, Any]) -> Iterator[Check]:
    from light_scheduler.doctor.run_checks import run_checks  # imported only when used

    return run_checks(settings, info)


class WrongSettings(ConfigurationError, click.ClickException):
    """A bad setting under `faust -A light_scheduler`. Its command line prints the error and exits with code 2."""

    exit_code = 2

    def __init__(self, setting: str, reason: str) -> None:
        ConfigurationError.__init__(self, setting, reason)
        click.ClickException.__init__(self, str(self))


@cache
def default_app() -> SchedulerApp:
    """Return the application for `faust -A light_scheduler worker`. Reads the environment and the settings file."""
    try:
        settings = load_settings()
        if settings.processes != 1:
            raise ConfigurationError("processes", "this command runs one: use `light-scheduler worker`, or set it to 1")
        return build(settings)
    except ConfigurationError as error:
        raise WrongSettings(error.setting, error.reason) from error
