"""When the id of a commands topic is asked for."""

from __future__ import annotations

import asyncio

import pytest

from light_scheduler.connection import Connection
from light_scheduler.errors import BrokerError, NoAnswer
from light_scheduler.kafka import topic_ids
from light_scheduler.kafka.lasting_admin import LastingAdmin
from light_scheduler.kafka.topic_ids import FRESH_S, UNANSWERED_S, TopicIdLookUp, TopicIds


class Cluster:
    """Topics whose ids change, and how often they were asked for."""

    def __init__(self) -> None:
        self.time = 0.0
        self.id: str | None = "id-1"
        self.asked = 0
        self.ids = TopicIds(self.ask, lambda: self.time)
        self.doubts_when_asked = self.is_away = False

    async def ask(self, _topic: str) -> str:
        self.asked += 1
        answer = self.id
        if self.doubts_when_asked:
            self.ids.doubt()
        await asyncio.sleep(0)
        if self.is_away:
            raise NoAnswer("the broker does not answer")
        if answer is None:
            raise BrokerError("there is no such topic")
        return answer


async def test_an_answer_is_used_for_a_moment() -> None:
    cluster = Cluster()
    for cluster.time in (0.0, FRESH_S / 2, FRESH_S - 0.01):
        assert await cluster.ids.lately("commands") == "id-1"
    assert cluster.asked == 1
    cluster.id, cluster.time = "id-2", FRESH_S
    assert await cluster.ids.lately("commands") == "id-2"


async def test_a_doubt_ends_the_use_of_an_answer_even_of_one_that_is_under_way() -> None:
    cluster = Cluster()
    await cluster.ids.lately("commands")
    cluster.ids.doubt()
    cluster.doubts_when_asked = True
    assert await cluster.ids.lately("commands") == "id-1"
    cluster.id, cluster.doubts_when_asked = "id-2", False
    assert await cluster.ids.lately("commands") == "id-2"
    assert await cluster.ids.lately("commands") == "id-2"
    assert cluster.asked == 3


async def test_lanes_that_ask_together_share_an_answer_and_topics_do_not() -> None:
    cluster = Cluster()
    await asyncio.gather(*(cluster.ids.lately(topic) for topic in ("commands", "commands", "commands", "others")))
    assert cluster.asked == 2


async def test_an_id_can_be_asked_for_at_once_and_an_error_is_not_kept() -> None:
    cluster = Cluster()
    await cluster.ids.lately("commands")
    cluster.id = "id-2"
    assert (await cluster.ids.now("commands"), await cluster.ids.lately("commands"), cluster.asked) == (
        "id-2",
        "id-2",
        2,
    )
    cluster.id = None
    cluster.ids.doubt()
    for _ in range(2):
        with pytest.raises(BrokerError):
            await cluster.ids.lately("commands")


async def test_without_an_answer_the_last_one_is_used_and_not_asked_for_all_the_time() -> None:
    cluster = Cluster()
    cluster.is_away = True
    with pytest.raises(NoAnswer):
        await cluster.ids.lately("commands")
    cluster.is_away = False
    await cluster.ids.lately("commands")
    cluster.is_away = True
    for cluster.time in (FRESH_S, FRESH_S + UNANSWERED_S - 0.01):
        cluster.ids.doubt()
        assert await cluster.ids.lately("commands") == "id-1"
    assert cluster.asked == 3
    cluster.id, cluster.is_away, cluster.time = "id-2", False, FRESH_S + UNANSWERED_S
    assert await cluster.ids.lately("commands") == "id-2"


BROKER = Connection("broker:1")


class Answering:
    """Takes the place of `topic_id`: clients by their number, of which some get no answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, silent: set[int]) -> None:
        self.made = 0
        self.asked: list[int] = []
        self._silent = silent
        monkeypatch.setattr(topic_ids, "LastingAdmin", lambda connection: LastingAdmin(connection, self._make))  # type: ignore[arg-type]
        monkeypatch.setattr(topic_ids, "topic_id", self._topic_id)

    def _make(self, _connection: Connection) -> int:
        self.made += 1
        return self.made

    def _topic_id(self, _connection: Connection, _topic: str, *, timeout: float, admin: int) -> str:
        self.asked.append(admin)
        if admin in self._silent:
            raise NoAnswer("the broker does not answer")
        return "id-1"


async def test_a_client_that_gets_an_answer_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answering = Answering(monkeypatch, silent=set())
    look_up = TopicIdLookUp(BROKER)
    assert [await look_up("commands") for _ in range(3)] == 3 * ["id-1"]
    assert answering.asked == [1, 1, 1]


async def test_a_client_that_waits_for_a_broker_that_is_gone_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    answering = Answering(monkeypatch, silent={1})
    look_up = TopicIdLookUp(BROKER)
    assert [await look_up("commands") for _ in range(2)] == 2 * ["id-1"]
    assert answering.asked == [1, 2, 2]


async def test_without_any_answer_the_error_is_that_of_the_second_client(monkeypatch: pytest.MonkeyPatch) -> None:
    answering = Answering(monkeypatch, silent={1, 2, 3})
    with pytest.raises(NoAnswer):
        await TopicIdLookUp(BROKER)("commands")
    assert answering.asked == [1, 2]
