"""Serving the API from Faust's own web server, on the port where a Faust user looks for it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from yarl import URL

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.connection.http_tls import client_context, server_context
from light_scheduler.errors import ConfigurationError
from light_scheduler.kafka.atomic_writer import AtomicWriter
from light_scheduler.kafka.log_reader import LogReader
from light_scheduler.processes import Process
from light_scheduler.setting_values import reachable_host
from light_scheduler.settings import Settings
from light_scheduler.tenants import TenantStore

from .bodies import Bodies
from .cluster import Access, Delays, Lanes, Peers
from .command_channel import CommandChannel, largest_body, largest_record
from .conditions import kept
from .guard import guarded
from .handlers import Handlers
from .hosts import known_hosts
from .listener import LimitedSite
from .middlewares import MIDDLEWARES, own_pages_write
from .peer_client import PEER_CLIENT, PeerClient
from .worker import Worker

if TYPE_CHECKING:
    from faust.types import AppT
    from faust.web.drivers.aiohttp import Web


def faust_options(settings: Settings) -> dict[str, Any]:
    """Return what `faust.App(...)` is to be given for the web server.

    Faust binds to all interfaces unless told otherwise. Handlers read the lanes' tables, so they run in the lanes'
    own loop and not in a thread. Faust puts its url together from `web_host` and `web_port` as they are.
    """
    return {
        "web_bind": settings.web_host,
        "web_host": f"[{settings.web_host}]" if ":" in settings.web_host else settings.web_host,
        "web_port": settings.web_port,
        "web_in_thread": False,
        "web_application_options": {"client_max_size": largest_body(settings)},
    }


def attach(
    app: AppT,
    *,
    lanes: Lanes,
    delays: Delays,
    peers: Peers,
    access: Access,
    tenants: TenantStore,
    settings: Settings,
    clock: Clock | None = None,
    process: Process | None = None,
    shared: Sequence[socket.socket] = (),
) -> None:
    """Serve the API, and nothing else, from a Faust app. To be called before its web server starts.

    `process` says which one of a node's processes this is, and `shared` are the listening sockets that they share.
    Raises ConfigurationError if the server's certificate cannot be used.
    """
    from faust.web.base import BlueprintManager

    # Faust's pages show tables, routing and statistics to anyone, and one of them holds "/".
    server = cast("Web", app.web)
    server.blueprints = BlueprintManager()
    tls = server_context(settings.http_security)
    server._transport_handlers = {
        **server._transport_handlers,
        "tcp": lambda: LimitedSite(server._runner, app.conf.web_bind, app.conf.web_port, shared, tls),
    }
    commands = CommandChannel(settings)
    worker = Worker(
        lanes,
        delays,
        commands,
        peers,
        settings,
        clock or SystemClock(),
        access,
        tenants,
        partial(LogReader, settings.connection),
        AtomicWriter(
            settings.connection, lambda: f"{settings.app_id}-redrive/{peers.own_url}", largest_record(settings)
        ),
        process,
    )
    install(server.web_app, worker)

    async def check(_: web.Application) -> None:
        # The options of `faust worker` are known only by then.
        try:
            reachable_host(URL(peers.own_url).host)
        except ValueError as error:
            raise ConfigurationError("--web-host", str(error)) from None

    async def close(_: web.Application) -> None:
        await commands.close()

    server.web_app.on_startup.append(check)
    server.web_app.on_cleanup.append(close)


def install(application: web.Application, worker: Worker) -> None:
    """Add routes, middlewares and the client for requests to other workers to an aiohttp application."""
    settings = worker.settings
    answered = known_hosts(worker.peers, (settings.web_host, *settings.web_allowed_hosts))
    handlers = Handlers(worker)
    bodies = Bodies(largest_body(settings), handlers.streaming())
    admitted = guarded(worker.access, worker.peers, worker.clock, handlers.rights())
    keeping = kept(handlers.headers())
    application.middlewares.extend((*MIDDLEWARES, answered, own_pages_write, admitted, keeping, bodies.read))
    application.add_routes(handlers.routes())
    application.on_shutdown.append(handlers.end_streams)
    application.on_cleanup.append(handlers.close)
    application.cleanup_ctx.append(handlers.watched)

    async def peer_client(application: web.Application) -> AsyncIterator[None]:
        async with PeerClient(worker.access, worker.clock, client_context(settings.http_security)) as client:
            application[PEER_CLIENT] = client
            yield

    application.cleanup_ctx.append(peer_client)
