"""Faust's web server on Faust's usual port, without Faust's own pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from faust.web.base import BlueprintManager

from light_scheduler.settings import Settings

if TYPE_CHECKING:
    from aiohttp import web
    from faust.types import AppT
    from faust.web.drivers.aiohttp import Web


def web_options(settings: Settings, largest_body: int) -> dict[str, Any]:
    """Return the arguments of `faust.App(...)` for the web server. `largest_body` is in bytes.

    Faust binds to all interfaces by default. Handlers read the lanes' tables, so they run in the lanes' loop and not in
    a thread. Faust builds its URL from `web_host` and `web_port` without brackets for IPv6, so these are added here.
    """
    return {
        "web_bind": settings.web_host,
        "web_host": f"[{settings.web_host}]" if ":" in settings.web_host else settings.web_host,
        "web_port": settings.web_port,
        "web_in_thread": False,
        "web_application_options": {"client_max_size": largest_body},
    }


class WebServer:
    """The web server of a Faust app. Pages must be added before it starts."""

    def __init__(self, app: AppT) -> None:
        self._conf = app.conf
        self._server = cast("Web", app.web)
        # Faust's pages show tables, routing and statistics to anyone, and one of them occupies "/".
        self._server.blueprints = BlueprintManager()

    @property
    def application(self) -> web.Application:
        return self._server.web_app

    def listen_with(self, new_site: Callable[[web.AppRunner, str, int], web.BaseSite]) -> None:
        """Accept connections with `new_site(runner, host, port)` instead of Faust's own site."""
        self._server._transport_handlers = {
            **self._server._transport_handlers,
            # The options of `faust worker` are known only when it starts.
            "tcp": lambda: new_site(self._server._runner, self._conf.web_bind, self._conf.web_port),
        }
