"""The HTTP handlers of tokens. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import msgspec
from aiohttp import web
from msgspec import UNSET

from light_scheduler.access import ANYONE, TokenError
from light_scheduler.access.tokens import RotationConflict, TokenUnusable
from light_scheduler.clock import Clock
from light_scheduler.durations import parse_typed_duration
from light_scheduler.errors import BrokerError
from light_scheduler.model import Requester
from light_scheduler.web.forms.json_bodies import BodyError, read_json
from light_scheduler.web.forms.parameters import read_parameters
from light_scheduler.web.forms.problems import RETRY_AFTER_S, ProblemError, ProblemType
from light_scheduler.web.interfaces import Access

from .guard import IDENTITY
from .requesters import requester_of
from .token_documents import NewTokenDocument, RotateParameters, TokenBody, TokenDocument, TokenList

_JSON = "application/json"

log = logging.getLogger(__name__)


class TokenHandlers:
    """One method per operation."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock

    async def list_tokens(self, request: web.Request) -> web.Response:
        del request
        return _json(TokenList.of(self._access.book, self._clock.now()))

    async def create_token(self, request: web.Request) -> web.Response:
        by = _changer(request)
        with _problems():
            body = read_json(await request.read(), TokenBody)
            lifetime = _lifetime(body)
            token, text = await self._access.store.create(body.name, body.role, body.tenants, by=by, lifetime=lifetime)
        log.info("token %s (%s, %s) was created by %s from %s", token.id, token.name, token.role, by.by, by.address)
        document = NewTokenDocument.of(token, text, self._access.book, self._clock.now())
        return _json(document, HTTPStatus.CREATED)

    async def rotate_token(self, request: web.Request) -> web.Response:
        by, id = _changer(request), request.match_info["token"]
        keep = read_parameters(RotateParameters, request.query).keep_ms
        with _problems():
            token, text = await self._access.store.rotate(id, keep=keep, by=by)
        log.info("token %s (%s) was rotated by %s from %s", id, token.name, by.by, by.address)
        return _json(NewTokenDocument.of(token, text, self._access.book, self._clock.now()))

    async def revoke_token(self, request: web.Request) -> web.Response:
        by, id = _changer(request), request.match_info["token"]
        with _problems():
            token = await self._access.store.revoke(id, by=by)
        log.info("token %s (%s) was revoked by %s from %s", id, token.name, by.by, by.address)
        return _json(TokenDocument.of(token, self._access.book, self._clock.now()))


def _lifetime(body: TokenBody) -> int | None:
    """Return how long a token is valid, ms. Raises BodyError."""
    try:
        return None if body.expires_in is UNSET else parse_typed_duration(body.expires_in)
    except ValueError as error:
        raise BodyError("expires_in", str(error)) from None


def _changer(request: web.Request) -> Requester:
    """Return the identity that changes tokens. Raises ProblemError while there are no tokens: creating the first one
    requires access to Kafka."""
    if request[IDENTITY] is ANYONE:
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "There is no token yet. Create the first one with `light-scheduler tokens create`, which needs the right "
            "to write to Kafka.",
        )
    return requester_of(request)


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except TokenUnusable as error:
        raise ProblemError(HTTPStatus.NOT_FOUND, f"{error.reason[0].upper()}{error.reason[1:]}.") from None
    except (TokenError, BodyError) as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, str(error), parameter=error.field, type=ProblemType.INVALID_TOKEN
        ) from None
    except RotationConflict as error:
        raise ProblemError(HTTPStatus.CONFLICT, f"{str(error)[0].upper()}{str(error)[1:]}.") from None
    except BrokerError as error:
        retry_after_s = RETRY_AFTER_S if error.retriable else None
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, str(error), retry_after_s=retry_after_s) from None


def _json(document: msgspec.Struct, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(document), content_type=_JSON)
