"""Cookies of browsers. A cookie holds a token: it is as good as the token, on every worker, until that ends.

A browser sends it with what any page asks of this host. `SameSite=Strict` keeps it to pages of the same site, and a
request that changes something has to say besides that a page of this very origin sent it.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import urlencode

from aiohttp import web

from .problems import ProblemError

COOKIE = "light-scheduler-token"

LOGIN_PATH = "/login"
LOG_OUT_PATH = "/logout"

NEXT = "next"
"""The parameter of the login page that has the page to go to afterwards."""

MOST_COOKIE_BYTES = 4_000
"""Of its name and value. Browsers drop a cookie that has more than 4,096 bytes, some of them with its attributes."""

_OWN_PAGE = re.compile(r"/(?:[!-.0-\[\]-~][!-\[\]-~]{0,1999})?", re.ASCII)
"""A path, with its query, on the host that is asked: //host and /\\host are other hosts to a browser."""

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
    """Return whether a browser would keep a token."""
    return len(COOKIE) + 1 + len(text.encode()) <= MOST_COOKIE_BYTES


def login_page(asked: str) -> str:
    """Return the address of the login page for who asked for a page (path and query)."""
    page = own_page(asked)
    return LOGIN_PATH if page == "/" else f"{LOGIN_PATH}?{urlencode({NEXT: page})}"


def own_page(text: str) -> str:
    """Return the page of a worker that a text names (path and query), else the first page."""
    return text if _OWN_PAGE.fullmatch(text) else "/"


def _is_of_own_page(request: web.Request) -> bool:
    """Return whether the browser says so. To secure addresses it says it outright, also where a proxy ends TLS."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    return request.headers.get("Origin") == f"{request.scheme}://{request.host}"


def begin(response: web.Response, request: web.Request, text: str) -> None:
    """Have a browser keep a token until it is closed."""
    response.set_cookie(COOKIE, text, path="/", httponly=True, samesite="Strict", secure=_is_secure(request))


def end(response: web.Response, request: web.Request) -> None:
    """Have a browser forget its token."""
    response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict", secure=_is_secure(request))


def _is_secure(request: web.Request) -> bool:
    """Return whether the browser reached this page over TLS, also where a proxy ends it.

    The browser itself says so. Who makes it up gets a cookie that is sent over TLS only.
    """
    page: str = request.headers.get("Origin", "") or request.headers.get("Referer", "")
    return request.secure or page.startswith("https://")
