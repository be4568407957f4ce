"""The page where a browser exchanges a token for a cookie. It needs no script."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from http import HTTPStatus
from urllib.parse import parse_qs

from aiohttp import web

from light_scheduler.access import TokenError
from light_scheduler.access.jwks import KeysUnavailable
from light_scheduler.access.tokens import parts_of
from light_scheduler.clock import Clock
from light_scheduler.web.forms.problems import RETRY_AFTER_S
from light_scheduler.web.interfaces import Access

from . import sessions
from .failed_logins import WINDOW_MS, Attempts
from .guard import holder_of
from .sessions import LOG_OUT_PATH, LOGIN_PATH, MOST_COOKIE_BYTES

LONGEST_FORM = 32 << 10

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

_NOT_LOADED = "This worker has not read the tokens from Kafka yet. Try again later."
_TOO_LONG = (
    f"The token is valid, but too long for a browser: it has {{length}} characters, and browsers keep cookies of up to "
    f"{MOST_COOKIE_BYTES} bytes. Let the identity provider put fewer claims into it, such as groups, or use a token of "
    "`light-scheduler tokens create`."
)

log = logging.getLogger(__name__)


class LoginHandlers:
    """One method per route."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._attempts = Attempts()

    async def login(self, request: web.Request) -> web.Response:
        return _page(is_logged_in=sessions.COOKIE in request.cookies)

    async def log_in(self, request: web.Request) -> web.Response:
        if not self._access.is_loaded:
            return _page(_NOT_LOADED, HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": str(RETRY_AFTER_S)})
        text = await _token_of(request)
        try:
            identity = await holder_of(text, self._access, self._clock.now())
        except TokenError as error:
            return self._refused(request, text, error.reason)
        except KeysUnavailable as error:
            return _page(f"{error}.", HTTPStatus.SERVICE_UNAVAILABLE)
        if not sessions.can_hold(text):
            return _page(_TOO_LONG.format(length=len(text)), HTTPStatus.BAD_REQUEST)
        log.info("%s logged in from %s", identity.name, request.remote)
        page = sessions.own_page(request.query.get(sessions.NEXT, ""))
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": page})
        sessions.begin(response, request, text)
        return response

    def _refused(self, request: web.Request, text: str, reason: str) -> web.Response:
        token = parts_of(text)[0] or sha256(text.encode()).hexdigest()
        if not self._attempts.failed(self._clock.now(), request.remote or "", token):
            wait = {"Retry-After": str(WINDOW_MS // 1_000)}
            return _page(
                "Too many attempts with wrong tokens. Try again in a minute.", HTTPStatus.TOO_MANY_REQUESTS, wait
            )
        log.info("a login from %s failed: the token %s", request.remote, reason)
        return _page(f"The token {reason}.", HTTPStatus.UNAUTHORIZED)

    async def log_out(self, request: web.Request) -> web.Response:
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": LOGIN_PATH})
        sessions.end(response, request)
        return response


async def _token_of(request: web.Request) -> str:
    """Return the token in a form, or an empty text. Requests without a Content-Length, and long ones, are not read."""
    length = request.content_length
    body = await request.read() if length is not None and length <= LONGEST_FORM else b""
    try:
        form = parse_qs(body.decode(), max_num_fields=5)
    except ValueError:
        form = {}
    return form.get("token", [""])[0].strip()


def _page(
    problem: str = "",
    status: HTTPStatus = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
    *,
    is_logged_in: bool = False,
) -> web.Response:
    notice = f'<p role="alert">{escape(problem)}</p>\n' if problem else ""
    leave = f'<form method="post" action="{LOG_OUT_PATH}"><button>Log out</button></form>\n' if is_logged_in else ""
    # Without an action, a form goes to the address of its page, with the fragment. Browsers keep that on redirects.
    text = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>light-scheduler: log in</title></head>
<body><main>
<h1>light-scheduler</h1>
{notice}<form method="post">
<p><label>Token <input name="token" type="password" autocomplete="current-password" required autofocus></label>
<button>Log in</button></p>
</form>
{leave}</main></body>
</html>
"""
    more = {"Content-Security-Policy": _POLICY, **(headers or {})}
    return web.Response(text=text, status=status, content_type="text/html", headers=more)
