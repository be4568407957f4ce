"""Serving the API from the worker's HTTP server."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from aiohttp import web
from yarl import URL

from light_scheduler.connection.http_tls import client_context, server_context
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings.values import reachable_host

from .access.guard import guarded
from .cluster.peer_client import PEER_CLIENT, PeerClient
from .commands.channel import largest_body
from .commands.conditions import kept
from .handlers import Handlers
from .limits.bodies import Bodies
from .server.hosts import known_hosts
from .server.listener import LimitedSite
from .server.middlewares import MIDDLEWARES, own_pages_write, utf8_addresses
from .worker import Worker


class Server(Protocol):
    """The worker's HTTP server, before it starts."""

    @property
    def application(self) -> web.Application:
        """The aiohttp application that the server serves."""
        ...

    def listen_with(self, new_site: Callable[[web.AppRunner, str, int], web.BaseSite]) -> None:
        """Accept connections through the site that `new_site(runner, host, port)` returns."""
        ...


def attach(server: Server, worker: Worker, shared: Sequence[socket.socket] = ()) -> None:
    """Serve the API of a worker. Call it before the server starts.

    `shared` are the listening sockets that the processes of a node share. Raises ConfigurationError if the server's
    certificate cannot be used.
    """
    tls = server_context(worker.settings.http_security)
    server.listen_with(lambda runner, host, port: LimitedSite(runner, host, port, shared, tls))
    install(server.application, worker)

    async def check(_: web.Application) -> None:
        # The options of `faust worker` are known only by then.
        try:
            reachable_host(URL(worker.peers.own_url).host)
        except ValueError as error:
            raise ConfigurationError("--web-host", str(error)) from None

    async def close(_: web.Application) -> None:
        try:
            await worker.kafka.commands.close()
        finally:
            await worker.kafka.close_logs()

    server.application.on_startup.append(check)
    server.application.on_cleanup.append(close)


def install(application: web.Application, worker: Worker) -> None:
    """Add routes, middlewares and the client for requests to other workers to an aiohttp application."""
    settings = worker.settings
    answered = known_hosts(worker.peers, (settings.web_host, *settings.web_allowed_hosts))
    handlers = Handlers(worker)
    bodies = Bodies(largest_body(settings), handlers.streaming())
    admitted = guarded(worker.access, worker.peers, worker.clock, handlers.rights(), handlers.busy)
    keeping = kept(handlers.headers())
    application.middlewares.extend(
        (*MIDDLEWARES, answered, own_pages_write, utf8_addresses, admitted, keeping, bodies.read)
    )
    application.add_routes(handlers.routes())
    application.on_shutdown.append(handlers.end_streams)
    application.on_cleanup.append(handlers.close)
    application.cleanup_ctx.append(handlers.decoding.running)
    application.cleanup_ctx.append(handlers.watched)

    async def peer_client(application: web.Application) -> AsyncIterator[None]:
        async with PeerClient(worker.access, worker.clock, client_context(settings.http_security)) as client:
            application[PEER_CLIENT] = client
            yield

    application.cleanup_ctx.append(peer_client)
    application.cleanup_ctx.append(handlers.rates.carrying)
