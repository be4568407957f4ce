"""Carries letters about rates between workers (see `lanes.quotas.rate_exchange`). The sender waits for arrival only.

    GET /peers/rates?letters=...    base64url of msgpack: [[to topic, to partition, from topic, form, kind, tenant,
                                    partition, number, thousandths of a token], ...]; `form` is `ask` or `grant`

Letters that cannot be delivered, or that a worker refuses, are lost; this is logged once for each outage. Only workers
may send them, whether or not access is set up.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import AsyncIterator, Iterable
from http import HTTPStatus
from typing import Literal, NamedTuple

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from light_scheduler.access.peers import PEER_HEADER, is_signed
from light_scheduler.lanes.quotas.rate_exchange import Letter, RateExchange
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateMessage, RateName

from .cluster.peer_client import PEER_CLIENT, PeerClient, authority_of, why_unreachable
from .forms.problems import ProblemError
from .worker import Worker

PATH = "/peers/rates"

MOST_LETTERS = 40
"""Number of letters taken from the outbox at a time."""

MOST_BYTES = 5_000
"""Bytes of the letters in one request, unless it has a single letter. They are in its first line, where base64 makes
them a third longer; a worker reads 8,190 bytes of it."""

ARRIVES_S = 2.0
"""How long a worker may take to answer."""

log = logging.getLogger(__name__)


class _Written(NamedTuple):
    """A letter in its encoded form."""

    to_topic: str
    to_partition: int
    topic: str
    form: Literal["ask", "grant"]
    kind: RateKind
    tenant: str
    partition: int
    number: int
    amount: int


class RateCourier:
    """The courier of one worker: delivers letters of its lanes, and receives those for them."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._outages = _Outages()

    async def take_rates(self, request: web.Request) -> web.Response:
        """Receive letters for lanes of this worker."""
        secret, exchange = self._worker.access.book.peer_secret, self._worker.exchange
        authority = authority_of(URL(self._worker.peers.own_url))
        signature = request.headers.get(PEER_HEADER, "")
        if secret is None or not is_signed(signature, secret, authority, request.raw_path, self._worker.clock.now()):
            raise ProblemError(HTTPStatus.FORBIDDEN, "Only the workers of this application may send this request.")
        for letter in read_letters(request.query.get("letters", "")):
            if exchange is not None:
                exchange.deliver(letter)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def carrying(self, application: web.Application) -> AsyncIterator[None]:
        """Deliver letters while the application runs."""
        exchange = self._worker.exchange
        if exchange is None:
            yield
            return
        carrying = asyncio.create_task(self._carry(exchange, application[PEER_CLIENT]))
        yield
        tasks = [carrying, *self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, exchange: RateExchange, client: PeerClient) -> None:
        while True:
            addressees = await exchange.addressees()
            self._outages.keep(exchange.sharing.workers.values())
            for url in addressees:
                if url not in self._under_way:
                    self._under_way[url] = asyncio.create_task(self._bring(exchange, client, url))

    async def _bring(self, exchange: RateExchange, client: PeerClient, url: str) -> None:
        """Deliver all letters for a worker. A worker that does not answer does not delay letters for others."""
        try:
            while letters := exchange.take(url, MOST_LETTERS):
                for text in write_letters(letters):
                    await self._send(client, url, text)
        except Exception as error:  # noqa: BLE001 - the next letters may arrive
            self._outages.note(url, "fails", f"cannot be asked: {error!r}", error)
        finally:
            del self._under_way[url]

    async def _send(self, client: PeerClient, url: str, text: str) -> None:
        address = URL(f"{url}{PATH}?letters={text}", encoded=True)
        try:
            async with client.get(address, ARRIVES_S) as response:
                status = response.status
        except TimeoutError:
            self._outages.note(url, "away", f"does not answer within {ARRIVES_S:.0f} s")
        except (aiohttp.ClientError, OSError) as error:
            self._outages.note(url, "away", why_unreachable(error))
        else:
            if status == HTTPStatus.NO_CONTENT:
                self._outages.over(url)
            else:
                self._outages.note(url, "refuses", f"refuses {PATH} with status {status}")


class _Outages:
    """Workers that do not accept letters. Each kind of trouble is logged once, until the worker accepts letters
    again."""

    def __init__(self) -> None:
        self._noted: dict[str, set[str]] = {}

    def note(self, url: str, kind: str, trouble: str, error: Exception | None = None) -> None:
        if kind not in (noted := self._noted.setdefault(url, set())):
            noted.add(kind)
            text = "worker %s %s. Tokens of rates that are lent to its partitions are lost until it takes them"
            log.warning(text, url, trouble, exc_info=error)

    def keep(self, urls: Iterable[str]) -> None:
        """Forget the trouble with all workers except these."""
        if self._noted:
            self._noted = {url: self._noted[url] for url in self._noted.keys() & {*urls}}

    def over(self, url: str) -> None:
        if self._noted.pop(url, None) is not None:
            log.info("worker %s takes tokens of rates, and asks for them, again", url)


def write_letters(letters: Iterable[Letter]) -> list[str]:
    """Encode letters for the paths of requests, as many in each as fit."""
    requests: list[list[msgspec.Raw]] = []
    room = 0
    for letter in letters:
        written = msgspec.msgpack.encode(_written(letter))
        if not requests or len(written) > room:
            requests.append([])
            room = MOST_BYTES
        requests[-1].append(msgspec.Raw(written))
        room -= len(written)
    return [base64.urlsafe_b64encode(msgspec.msgpack.encode(each)).decode().rstrip("=") for each in requests]


def read_letters(text: str) -> list[Letter]:
    """Decode letters. Raises ProblemError."""
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        written = msgspec.msgpack.decode(content, type=list[_Written])
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, f"letters: cannot be read: {error}") from None
    return [_read(each) for each in written]


def _written(letter: Letter) -> _Written:
    topic, said = letter.message
    form: Literal["ask", "grant"] = "ask" if isinstance(said, RateAsk) else "grant"
    return _Written(*letter.to, topic, form, said.name.kind, said.name.tenant, *said[1:])


def _read(written: _Written) -> Letter:
    said = RateName(written.kind, written.tenant), written.partition, written.number, written.amount
    message = RateMessage(written.topic, RateAsk(*said) if written.form == "ask" else RateGrant(*said))
    return Letter((written.to_topic, written.to_partition), message)
