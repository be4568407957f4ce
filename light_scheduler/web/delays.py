"""The HTTP handlers of delay rules. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from light_scheduler.delays import DelayLaneStatus, DelayView, RuleFromConfigurationError
from light_scheduler.errors import BrokerError
from light_scheduler.model import RuleError
from light_scheduler.model.delay import parse_rule

from .access.requesters import requester_of
from .cluster.answers import TOTAL_TIMEOUT_S
from .cluster.peer_client import PEER_CLIENT, PeerClient
from .delay_documents import DelayBody, DelayList
from .forms.json_bodies import BodyError, read_json
from .forms.problems import RETRY_AFTER_S, ProblemError, ProblemType
from .interfaces import Delays, Peers

_JSON = "application/json"

log = logging.getLogger(__name__)


class _Info(msgspec.Struct):
    """The part of a worker's `/info` about delays."""

    delays: list[DelayLaneStatus]


class DelayHandlers:
    """One method per operation."""

    def __init__(self, delays: Delays, peers: Peers) -> None:
        self._delays = delays
        self._delay_peers = peers

    async def list_delays(self, request: web.Request) -> web.Response:
        peers, client = self._delay_peers, request.app[PEER_CLIENT]
        urls = sorted(peers.owners().keys() - {peers.own_url})
        answers = await asyncio.gather(*(_lanes_of(client, url) for url in urls))
        lanes = [*self._delays.lanes(), *(lane for answer in answers for lane in answer or [])]
        return _json(
            DelayList(
                delays=self._delays.views(),
                lanes=sorted(lanes, key=lambda lane: (lane.rule, lane.source, lane.partition)),
                unanswered=[url for url, answer in zip(urls, answers, strict=True) if answer is None],
            )
        )

    async def get_delay(self, request: web.Request) -> web.Response:
        return _json(self._view(request.match_info["name"]))

    async def put_delay(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        with _problems():
            body = read_json(await request.read(), DelayBody)
            rule, by = parse_rule(name, body.source, str(body.delay), body.target), requester_of(request)
            is_new = await self._delays.put(rule, by=by)
        log.info("delay rule %s was put by %s from %s", name, by.by, by.address)
        return _json(self._view(name), HTTPStatus.CREATED if is_new else HTTPStatus.OK)

    async def delete_delay(self, request: web.Request) -> web.Response:
        name, by = request.match_info["name"], requester_of(request)
        with _problems():
            if not await self._delays.remove(name, by=by):
                raise _unknown(name)
        log.info("delay rule %s was removed by %s from %s", name, by.by, by.address)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    def _view(self, name: str) -> DelayView:
        for view in self._delays.views():
            if view.name == name:
                return view
        raise _unknown(name)


async def _lanes_of(client: PeerClient, url: str) -> list[DelayLaneStatus] | None:
    try:
        async with client.get(URL(url.rstrip("/") + "/info"), TOTAL_TIMEOUT_S) as response:
            return msgspec.json.decode(await response.read(), type=_Info).delays
    except (TimeoutError, aiohttp.ClientError, ValueError, msgspec.MsgspecError):
        return None


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except (RuleError, BodyError) as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, str(error), parameter=error.field, type=ProblemType.INVALID_DELAY_RULE
        ) from None
    except RuleFromConfigurationError as error:
        raise ProblemError(HTTPStatus.CONFLICT, str(error), type=ProblemType.DELAY_RULE_IN_CONFIGURATION) from None
    except BrokerError as error:
        retry_after_s = RETRY_AFTER_S if error.retriable else None
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, str(error), retry_after_s=retry_after_s) from None


def _unknown(name: str) -> ProblemError:
    return ProblemError(HTTPStatus.NOT_FOUND, f"There is no delay rule {name!r}.")


def _json(document: msgspec.Struct, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(document), content_type=_JSON)
