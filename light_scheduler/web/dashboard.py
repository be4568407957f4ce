"""The dashboard's files. They are read once, and the page may load nothing else.

Its content security policy allows scripts from this worker only. It requires Trusted Types without allowing any policy,
so no string can be assigned to `innerHTML` and no text can become markup or code.
"""

from __future__ import annotations

import re
from importlib.resources import files

from aiohttp import web

DASHBOARD_PATH = "/dashboard/{file}"

_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)

_MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
_NAME = re.compile(r"[a-z_]+(\.[a-z]+)")
INDEX = "index.html"


class DashboardHandlers:
    """One method per route."""

    def __init__(self) -> None:
        folder = files("light_scheduler.web") / "static"
        self._files = {file.name: file.read_bytes() for file in folder.iterdir() if _media_type(file.name)}

    async def index(self, request: web.Request) -> web.Response:
        del request
        return self._response(INDEX)

    async def dashboard_file(self, request: web.Request) -> web.Response:
        name = request.match_info["file"]
        if name not in self._files or name == INDEX:
            raise web.HTTPNotFound
        return self._response(name)

    def _response(self, name: str) -> web.Response:
        return web.Response(
            body=self._files[name],
            content_type=_media_type(name),
            charset="utf-8",
            headers={"Content-Security-Policy": _POLICY},
        )


def _media_type(name: str) -> str | None:
    """Return the media type of a dashboard file; None if the file is not served."""
    match = _NAME.fullmatch(name)
    return None if match is None else _MEDIA_TYPES.get(match[1])
