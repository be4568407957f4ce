"""Letters about rates that workers bring to each other over HTTP."""

from __future__ import annotations

import pytest
from support.waiting import eventually
from yarl import URL

from light_scheduler.access.peers import PEER_HEADER, signed
from light_scheduler.lanes.rate_exchange import Letter
from light_scheduler.model.rate_lending import ALL, RateAsk, RateGrant, RateKind, RateMessage, RateName
from light_scheduler.web.problems import ProblemError
from light_scheduler.web.rate_courier import PATH, read_letters, write_letters

from .conftest import NOW, TOPIC, MemoryCluster

NAME = RateName(RateKind.COMMANDS, "acme")
LETTERS = [
    Letter((TOPIC, 1), RateMessage(TOPIC, RateAsk(NAME, 0, 7, 2_500))),
    Letter((TOPIC, 0), RateMessage("other", RateGrant(RateName(RateKind.FIRINGS, ALL), 3, 8, 0))),
]


def test_letters_are_read_as_they_were_written() -> None:
    assert read_letters(write_letters(LETTERS)) == LETTERS


@pytest.mark.parametrize("text", ["?", "AAA", "kQ", write_letters(LETTERS)[:-9]])
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
    path = f"{PATH}?letters={write_letters(LETTERS[:1])}"
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
