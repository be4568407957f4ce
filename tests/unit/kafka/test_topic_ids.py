"""When the id of a commands topic is asked for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import ConnectionGroup
from aiokafka.errors import RequestTimedOutError, UnknownTopicOrPartitionError

from light_scheduler.errors import BrokerError, NoAnswer
from light_scheduler.kafka.topic_ids import UNANSWERED_S, TopicIdLookUp, TopicIds


class Cluster:
    """Topics whose ids change, and how often they were asked for."""

    def __init__(self) -> None:
        self.time = 0.0
        self.id: str | None = "id-1"
        self.asked = 0
        self.ids = TopicIds(self.ask, lambda: self.time)
        self.is_away = False

    async def ask(self, _topic: str) -> str:
        self.asked += 1
        answer = self.id
        await asyncio.sleep(0)
        if self.is_away:
            raise NoAnswer("the broker does not answer")
        if answer is None:
            raise BrokerError("there is no such topic")
        return answer


async def test_an_answer_tells_of_what_was_fetched_before_it_was_asked_for_and_of_nothing_later() -> None:
    cluster = Cluster()
    for cluster.time, cluster.id in ((0.0, "id-1"), (0.001, "id-2")):
        assert await cluster.ids.fresh("commands") == cluster.id
    assert cluster.asked == 2


async def test_lanes_that_ask_at_once_share_an_answer_but_not_one_that_is_under_way() -> None:
    cluster = Cluster()
    first = asyncio.create_task(cluster.ids.fresh("commands"))
    await asyncio.sleep(0)
    cluster.time, cluster.id = 1.0, "id-2"
    later = await asyncio.gather(*(cluster.ids.fresh(topic) for topic in ("commands", "commands", "others")))
    assert (await first, later, cluster.asked) == ("id-1", 3 * ["id-2"], 3)


async def test_an_error_is_not_kept() -> None:
    cluster = Cluster()
    cluster.id = None
    for _ in range(2):
        with pytest.raises(BrokerError):
            await cluster.ids.fresh("commands")
    cluster.id = "id-2"
    assert await cluster.ids.now("commands") == "id-2"


async def test_without_an_answer_the_last_one_is_used_and_not_asked_for_all_the_time() -> None:
    cluster = Cluster()
    cluster.is_away = True
    with pytest.raises(NoAnswer):
        await cluster.ids.fresh("commands")
    cluster.is_away = False
    await cluster.ids.fresh("commands")
    cluster.is_away = True
    for cluster.time in (1.0, 1.0 + UNANSWERED_S):
        assert await cluster.ids.fresh("commands") == "id-1"
    assert cluster.asked == 3
    cluster.id, cluster.is_away, cluster.time = "id-2", False, 1.1 + UNANSWERED_S
    assert await cluster.ids.fresh("commands") == "id-2"


class Broker:
    """Takes the place of a client: tells ids, or fails, as its cluster does."""

    def __init__(self, brokers: Brokers, *, answers: bool) -> None:
        self.brokers = brokers
        self.answers = answers
        self.is_closed = False
        self._conns: dict[tuple[int, ConnectionGroup], Any] = {}

    def disconnect(self) -> None:
        """Lose all connections, as when a broker was found silent."""
        self._conns.clear()

    async def bootstrap(self) -> None:
        """It is there."""

    def get_random_node(self) -> int:
        self.brokers.chosen += 1
        return self.brokers.chosen

    async def send(self, node: int, _request: object) -> Any:
        self.brokers.asked.append(self)
        self.brokers.nodes.append(node)
        self._conns[node, ConnectionGroup.DEFAULT] = SimpleNamespace(connected=lambda: True)
        if not self.answers:
            raise RequestTimedOutError
        return SimpleNamespace(topic_id=lambda: (self.brokers.error_code, "id-1"))

    async def close(self) -> None:
        self.is_closed = True


class Brokers:
    """Makes clients, the first of which get no answer."""

    def __init__(self, *, silent: int = 0) -> None:
        self.clients: list[Broker] = []
        self.asked: list[Broker] = []
        self.chosen = 0
        self.nodes: list[int] = []
        self.error_code = 0
        self._silent = silent

    def connect(self) -> Any:
        self.clients.append(Broker(self, answers=len(self.clients) >= self._silent))
        return self.clients[-1]


async def test_a_connection_that_brings_an_answer_is_used_again() -> None:
    brokers = Brokers()
    look_up = TopicIdLookUp(brokers.connect)
    assert await asyncio.gather(*(look_up("commands") for _ in range(3))) == 3 * ["id-1"]
    assert brokers.asked == 3 * brokers.clients
    await look_up.close()
    assert brokers.clients[0].is_closed


async def test_the_broker_that_answered_is_asked_again_and_not_one_that_may_hang() -> None:
    brokers = Brokers(silent=1)
    look_up = TopicIdLookUp(brokers.connect)
    for _ in range(3):
        await look_up("commands")
    assert brokers.nodes == [1, 2, 2, 2]


async def test_a_broker_whose_connection_was_closed_is_no_longer_the_one_to_ask() -> None:
    brokers = Brokers()
    look_up = TopicIdLookUp(brokers.connect)
    await look_up("commands")
    brokers.clients[0].disconnect()
    for _ in range(2):
        await look_up("commands")
    assert brokers.nodes == [1, 2, 2]


async def test_a_connection_that_brings_none_is_replaced() -> None:
    brokers = Brokers(silent=1)
    look_up = TopicIdLookUp(brokers.connect)
    assert [await look_up("commands") for _ in range(2)] == 2 * ["id-1"]
    first, second = brokers.clients
    assert brokers.asked == [first, second, second]
    assert (first.is_closed, second.is_closed) == (True, False)


async def test_without_any_answer_nothing_is_left_open() -> None:
    brokers = Brokers(silent=2)
    with pytest.raises(NoAnswer, match="RequestTimedOutError"):
        await TopicIdLookUp(brokers.connect)("commands")
    assert [client.is_closed for client in brokers.clients] == [True, True]


async def test_a_topic_that_is_not_there_has_no_id() -> None:
    brokers = Brokers()
    brokers.error_code = UnknownTopicOrPartitionError.errno
    with pytest.raises(BrokerError, match="topic commands has no id: UnknownTopicOrPartitionError"):
        await TopicIdLookUp(brokers.connect)("commands")
