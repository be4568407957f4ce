"""Login cookies. A cookie contains a token: on every worker it is worth as much as the token, and expires with it.

A browser sends it with requests that any page makes to this host. `SameSite=Strict` limits it to pages of the same
site. Requests that change something must also prove that a page of this exact origin sent them.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import urlencode

from aiohttp import web

from light_scheduler.web.forms.problems import ProblemError

COOKIE = "light-scheduler-token"

LOGIN_PATH = "/login"
LOG_OUT_PATH = "/logout"

NEXT = "next"
"""Parameter of the login page: the page to open afterwards."""

MOST_COOKIE_BYTES = 4_000
"""Maximum bytes of its name and value. Browsers drop cookies above 4,096 bytes; some of them count the attributes."""

_OWN_PAGE = re.compile(r"/(?:[!-.0-\[\]-~][!-\[\]-~]{0,1999})?", re.ASCII)
"""A path with its query on this host. //host and /\\host would be other hosts to a browser."""

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def cookie_of(request: web.Request) -> str | None:
    """Return the token of a request's cookie. Raises ProblemError (403) if another page may have sent the request."""
    text = request.cookies.get(COOKIE)
    if text and request.method not in _READING and not _is_of_own_page(request):
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "A request that is let in by a cookie can change something only if a page of this worker sent it. Programs "
            "send the header `Authorization: Bearer TOKEN` instead.",
        )
    return text or None


def can_hold(text: str) -> bool:
    """Return whether a browser would store a token of this size."""
    return len(COOKIE) + 1 + len(text.encode()) <= MOST_COOKIE_BYTES


def login_page(asked: str) -> str:
    """Return the address of the login page, for a request of the page `asked` (path and query)."""
    page = own_page(asked)
    return LOGIN_PATH if page == "/" else f"{LOGIN_PATH}?{urlencode({NEXT: page})}"


def own_page(text: str) -> str:
    """Return the worker's page that a text names (path and query), or else the first page."""
    return text if _OWN_PAGE.fullmatch(text) else "/"


def _is_of_own_page(request: web.Request) -> bool:
    """Return whether the browser states this. On secure addresses it does so explicitly, even if a proxy ends TLS."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    return request.headers.get("Origin") == f"{request.scheme}://{request.host}"


def begin(response: web.Response, request: web.Request, text: str) -> None:
    """Store a token in the browser, until the browser is closed."""
    response.set_cookie(COOKIE, text, path="/", httponly=True, samesite="Strict", secure=_is_secure(request))


def end(response: web.Response, request: web.Request) -> None:
    """Delete the browser's token."""
    response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict", secure=_is_secure(request))


def _is_secure(request: web.Request) -> bool:
    """Return whether the browser reached this page over TLS, even if a proxy ends it.

    The browser itself says so. A client that lies gets a cookie that is sent over TLS only.
    """
    page: str = request.headers.get("Origin", "") or request.headers.get("Referer", "")
    return request.secure or page.startswith("https://")
