"""Serving the API from Faust's own web server, on the port where a Faust user looks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.settings import Settings

from .cluster import Delays, Lanes, Peers
from .command_channel import CommandChannel, largest_body
from .handlers import PEER_SESSION, Handlers, Worker
from .middlewares import MIDDLEWARES
from .scatter import new_session

if TYPE_CHECKING:
    from faust.types import AppT
    from faust.web.drivers.aiohttp import Web


def faust_options(settings: Settings) -> dict[str, Any]:
    """Return what `faust.App(...)` is to be given for the web server.

    Faust binds to all interfaces unless told otherwise. Handlers read the lanes' tables, so they run in the lanes'
    own loop and not in a thread.
    """
    return {
        "web_bind": settings.web_host,
        "web_host": settings.web_host,
        "web_port": settings.web_port,
        "web_in_thread": False,
        "web_application_options": {"client_max_size": largest_body(settings)},
    }


def attach(
    app: AppT, *, lanes: Lanes, delays: Delays, peers: Peers, settings: Settings, clock: Clock | None = None
) -> None:
    """Serve the API, and nothing else, from a Faust app. To be called before its web server starts."""
    from faust.web.base import BlueprintManager

    # Faust's pages show tables, routing and statistics to anyone, and one of them holds "/".
    server = cast("Web", app.web)
    server.blueprints = BlueprintManager()
    commands = CommandChannel(settings)
    install(server.web_app, Worker(lanes, delays, commands, peers, settings, clock or SystemClock()))

    async def close(_: web.Application) -> None:
        await commands.close()

    server.web_app.on_cleanup.append(close)


def install(application: web.Application, worker: Worker) -> None:
    """Add routes, middlewares and the session for requests to other workers to an aiohttp application."""
    application.middlewares.extend(MIDDLEWARES)
    application.add_routes(Handlers(worker).routes())
    application.cleanup_ctx.append(_peer_session)


async def _peer_session(application: web.Application) -> AsyncIterator[None]:
    async with new_session() as session:
        application[PEER_SESSION] = session
        yield
