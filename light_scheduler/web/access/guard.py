"""Authentication and authorization: each request is checked before its body is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from light_scheduler.access import ANYONE, PEER, Identity, Right, Role, TokenError, Verdict
from light_scheduler.access.jwks import KeysUnavailable
from light_scheduler.access.peers import PEER_HEADER, is_signed
from light_scheduler.access.tokens import PREFIX
from light_scheduler.clock import Clock
from light_scheduler.web.cluster.answers import is_local
from light_scheduler.web.cluster.peer_client import authority_of
from light_scheduler.web.forms.problems import RETRY_AFTER_S, ProblemError
from light_scheduler.web.interfaces import Access, Peers
from light_scheduler.web.limits.busy_connections import BusyConnections
from light_scheduler.web.limits.shares import HOLDER, holder_for

from .sessions import cookie_of, login_page

IDENTITY = web.RequestKey("identity", Identity)
"""The identity of a request that needs a right."""

STILL_ADMITTED = web.RequestKey[Callable[[], Awaitable[Identity]]]("still admitted")
"""Checks the authorization of a long request again. Raises ProblemError."""

_NO_SUCH_PATH = Right(Role.METRICS)
"""Any valid token may learn which paths exist."""

_UNLISTED = Right(Role.ADMIN, all_tenants=True)

_BEARER = 'Bearer realm="light-scheduler"'


class _ChallengeError(ProblemError):
    """A problem with a `WWW-Authenticate` header, which tells how to log in."""

    def __init__(self, status: HTTPStatus, detail: str, challenge: str) -> None:
        super().__init__(status, detail)
        self.headers["WWW-Authenticate"] = challenge


def guarded(
    access: Access, peers: Peers, clock: Clock, rights: Mapping[Handler, Right], busy: BusyConnections
) -> Middleware:
    """Return a middleware that only lets requests through that `rights` allow, by the handler of their route.

    It stores the holder of a request in `HOLDER`, and counts its connection in `busy`.
    """

    @web.middleware
    async def admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
        match = request.match_info
        right = rights.get(match.handler, _UNLISTED if match.http_exception is None else _NO_SUCH_PATH)
        HOLDER.set("")
        if right.role is not None:

            async def identified() -> Identity:
                identity = await _identified(request, access, peers, clock)
                _judge(identity, right, match.get("tenant"))
                return identity

            try:
                request[IDENTITY] = await identified()
            except ProblemError as error:
                if error.problem.status == HTTPStatus.UNAUTHORIZED and _is_of_browser(request):
                    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": login_page(request.raw_path)})
                raise
            request[STILL_ADMITTED] = identified
            HOLDER.set(holder_for(request[IDENTITY], match.get("tenant")))
            _hold_connection(request[IDENTITY], busy)
        return await handler(request)

    return admitted


def _hold_connection(identity: Identity, busy: BusyConnections) -> None:
    """Count a connection for the sender of its request, until the request is done. Raises ProblemError if they have too
    many."""
    task = asyncio.current_task()
    if identity is not ANYONE and identity is not PEER and task is not None:
        busy.hold(identity, task)


def refuse_hidden(request: web.Request, tenant: str | None) -> None:
    """Raise ProblemError (404) if a body or a query names a tenant that is hidden from the identity."""
    if tenant is not None and not request[IDENTITY].sees(tenant):
        raise _hidden(tenant)


def refuse_reserved(request: web.Request, topic: str | None, reserved: frozenset[str]) -> None:
    """Raise ProblemError (403) if a token for some tenants targets one of the application's own topics: a message in a
    commands topic is a command, and may name any tenant."""
    if topic in reserved and request[IDENTITY].tenants is not None:
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            f"target.topic: {topic} is a topic of the scheduler itself. Only a token for all tenants may deliver to it",
            parameter="target.topic",
        )


async def _identified(request: web.Request, access: Access, peers: Peers, clock: Clock) -> Identity:
    if not access.is_loaded:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "This worker has not read the tokens from Kafka yet. Try again later.",
            retry_after_s=RETRY_AFTER_S,
        )
    book, now = access.book, clock.now()
    if not book.is_set_up and access.oidc is None:
        return ANYONE
    signature = request.headers.get(PEER_HEADER)
    if signature is not None or is_local(request):
        authority = authority_of(URL(peers.own_url))
        if (
            request.method == "GET"
            and book.peer_secret is not None
            and is_signed(signature or "", book.peer_secret, authority, request.raw_path, now)
        ):
            return PEER
        raise _unauthorized("The request claims to be from a worker, and its signature is missing, wrong or old.")
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if not scheme and (cookie := cookie_of(request)) is not None:
        scheme, text = "bearer", cookie
    if scheme.lower() != "bearer":
        raise _unauthorized(
            "This request needs a token: send the header `Authorization: Bearer TOKEN`, or log in at /login.", ""
        )
    try:
        return await holder_of(text.strip(), access, now)
    except TokenError as error:
        raise _unauthorized(f"The token {error.reason}.") from None
    except KeysUnavailable as error:
        detail = f"{error}. Try again later."
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail, retry_after_s=RETRY_AFTER_S) from None


def _is_of_browser(request: web.Request) -> bool:
    """Return whether the request is for a page in a browser: programs and scripts of pages do not ask for HTML
    explicitly."""
    is_reading = request.method in ("GET", "HEAD") and "Authorization" not in request.headers
    navigates = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    return is_reading and navigates and "text/html" in request.headers.get("Accept", "")


async def holder_of(text: str, access: Access, now: int) -> Identity:
    """Return the identity that a token stands for, and note that the token was used. Raises TokenError,
    KeysUnavailable."""
    if access.oidc is not None and not text.startswith(PREFIX):
        return await access.oidc.identity(text)
    token = access.book.holder(text, now)
    access.used(token)
    return token.identity


def _judge(identity: Identity, right: Right, tenant: str | None) -> None:
    verdict = identity.verdict(right, tenant)
    if verdict is Verdict.HIDDEN:
        raise _hidden(str(tenant))
    if verdict is Verdict.FORBIDDEN:
        scope = " for all tenants" if right.all_tenants else ""
        raise _ChallengeError(
            HTTPStatus.FORBIDDEN,
            f"This needs a token with the role {right.role}{scope}. The token of this request has the role "
            f"{identity.role}{'' if identity.tenants is None else ' for some tenants'}.",
            f'{_BEARER}, error="insufficient_scope"',
        )


def _hidden(tenant: str) -> ProblemError:
    """Return the same answer whether the tenant exists or not."""
    return ProblemError(HTTPStatus.NOT_FOUND, f"There is no tenant {tenant!r}.")


def _unauthorized(detail: str, error: str = ', error="invalid_token"') -> ProblemError:
    return _ChallengeError(HTTPStatus.UNAUTHORIZED, detail, _BEARER + error)
