"""Letters about rates that workers bring to each other over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from support.waiting import eventually
from support.web_cluster.cluster import KnownPeers, MemoryCluster
from support.web_cluster.schedules import NOW, TOPIC
from yarl import URL

from light_scheduler.access.peers import PEER_HEADER, signed
from light_scheduler.lanes.quotas.rate_exchange import Letter, RateExchange
from light_scheduler.model.rate_lending import ALL, RateAsk, RateGrant, RateKind, RateMessage, RateName
from light_scheduler.web.cluster.peer_client import PEER_CLIENT
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.rate_courier import MOST_LETTERS, PATH, RateCourier, read_letters, write_letters

NAME = RateName(RateKind.COMMANDS, "acme")
LETTERS = [
    Letter((TOPIC, 1), RateMessage(TOPIC, RateAsk(NAME, 0, 7, 2_500))),
    Letter((TOPIC, 0), RateMessage("other", RateGrant(RateName(RateKind.FIRINGS, ALL), 3, 8, 0))),
]


def test_letters_are_read_as_they_were_written() -> None:
    (text,) = write_letters(LETTERS)
    assert read_letters(text) == LETTERS
    assert write_letters([]) == []


@pytest.mark.parametrize("text", ["?", "AAA", "kQ", *(each[:-9] for each in write_letters(LETTERS))])
def test_damaged_letters_are_refused(text: str) -> None:
    with pytest.raises(ProblemError):
        read_letters(text)


async def test_a_worker_brings_letters_to_another_one_and_takes_none_but_those_of_workers(
    cluster: MemoryCluster,
) -> None:
    one, two = await cluster.start([0], [1])
    await one.access.store.make_peer_secret()
    await two.access.store.follow(lambda: None)
    sender, receiver = one.exchange.post_of((TOPIC, 0)), two.exchange.post_of((TOPIC, 1))
    receiver.open(lambda: None)
    ask = RateAsk(NAME, 0, 7, 2_500)
    sender.send((TOPIC, 1), ask)
    assert await eventually(receiver.received) == [RateMessage(TOPIC, ask)]
    (text,) = write_letters(LETTERS[:1])
    path = f"{PATH}?letters={text}"
    address = URL(two.peers.own_url + path, encoded=True)
    secret = two.access.book.peer_secret
    assert secret is not None
    for headers, status in (
        ({}, 403),
        ({PEER_HEADER: signed(b"another", f"{address.host}:{address.port}", path, NOW)}, 403),
        ({PEER_HEADER: signed(secret, f"{address.host}:{address.port}", path, NOW)}, 204),
    ):
        async with two.client.session.get(address, headers=headers) as response:
            assert response.status == status
    assert receiver.received() == [LETTERS[0].message]


async def test_letters_with_the_longest_names_arrive(cluster: MemoryCluster) -> None:
    one, two = await cluster.start([0], [1])
    await one.access.store.make_peer_secret()
    await two.access.store.follow(lambda: None)
    sender, receiver = one.exchange.post_of(("t" * 249, 0)), two.exchange.post_of((TOPIC, 1))
    receiver.open(lambda: None)
    asks = [RateAsk(RateName(RateKind.COMMANDS, "a" * 128), 0, number, 1) for number in range(2 * MOST_LETTERS)]
    for ask in asks:
        sender.send((TOPIC, 1), ask)
    received: list[RateMessage] = []

    def all_received() -> bool:
        received.extend(receiver.received())
        return len(received) >= len(asks)

    await eventually(all_received)
    assert [message.said for message in received] == asks


class Answers:
    """A client for requests to a worker, with the answers that it gets."""

    def __init__(self, *answers: int | Exception) -> None:
        self.left = [*answers]

    @asynccontextmanager
    async def get(self, address: URL, timeout: object) -> AsyncIterator[SimpleNamespace]:
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield SimpleNamespace(status=answer)


async def logged_of(caplog: pytest.LogCaptureFixture, *answers: int | Exception) -> list[str]:
    """Bring letters, one at a time, to a worker that answers so; return what was logged, without the common end."""
    peers = KnownPeers({"http://other": {TOPIC: [1]}})
    worker: Any = SimpleNamespace(exchange=RateExchange(peers, [TOPIC]))
    client = Answers(*answers)
    courier = RateCourier(worker)
    application: Any = {PEER_CLIENT: client}
    carrying = courier.carrying(application)

    def is_sent(left: int) -> bool:
        return len(client.left) == left and not courier._under_way

    caplog.set_level("INFO")
    await anext(carrying)
    for left in reversed(range(len(client.left))):
        worker.exchange.send(LETTERS[0])
        await eventually(partial(is_sent, left))
    await anext(carrying, None)
    return [record.getMessage().partition(". ")[0].removeprefix("worker http://other ") for record in caplog.records]


async def test_a_worker_that_refuses_letters_is_logged_once_and_no_failure_is_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await logged_of(caplog, 400, 400, 204, RuntimeError("by mistake"), TimeoutError(), 403, 403) == [
        "refuses /peers/rates with status 400",
        "takes tokens of rates, and asks for them, again",
        "cannot be asked: RuntimeError('by mistake')",
        "does not answer within 2 s",
        "refuses /peers/rates with status 403",
    ]


@pytest.mark.parametrize(
    "away", [TimeoutError(), aiohttp.ServerDisconnectedError(), ConnectionResetError(), OSError("no route")]
)
async def test_a_worker_that_is_away_is_logged_once_for_each_outage_and_once_when_it_is_back(
    caplog: pytest.LogCaptureFixture, away: Exception
) -> None:
    away_again = [away, away, away]
    logged = await logged_of(caplog, 204, *away_again, 204, 204, *away_again, 204)
    assert [each.startswith("takes") for each in logged] == [False, True, False, True]
    assert [record.levelname for record in caplog.records] == 2 * ["WARNING", "INFO"]
    assert not any(record.exc_info for record in caplog.records)


async def test_the_trouble_with_a_worker_that_has_left_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    peers = KnownPeers({"http://other": {TOPIC: [1]}})
    worker: Any = SimpleNamespace(exchange=RateExchange(peers, [TOPIC]))
    client = Answers(*[TimeoutError()] * 3)
    courier = RateCourier(worker)
    application: Any = {PEER_CLIENT: client}
    carrying = courier.carrying(application)

    def is_sent(left: int) -> bool:
        return len(client.left) == left and not courier._under_way

    await anext(carrying)
    for left, owner in (2, "other"), (1, "another"), (0, "another"):
        peers.distribution = {f"http://{owner}": {TOPIC: [1]}}
        worker.exchange.send(LETTERS[0])
        await eventually(partial(is_sent, left))
    assert [*courier._outages._noted] == ["http://another"]
    assert len(caplog.records) == 2
    await anext(carrying, None)


@pytest.mark.parametrize("times", [1, 3])
async def test_a_failure_that_nobody_expects_is_logged_with_where_it_comes_from_once(
    caplog: pytest.LogCaptureFixture, times: int
) -> None:
    await logged_of(caplog, *(RuntimeError("by mistake") for _ in range(times)))
    (record,) = caplog.records
    assert record.exc_info
