"""How a worker reaches Kafka to tell Karafka's Web UI of its partitions, and that an end is not held up by it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from light_scheduler import application
from light_scheduler.agents.services import karafka_states
from light_scheduler.agents.services.karafka_states import KarafkaStates
from light_scheduler.clock import SettableClock
from light_scheduler.connection import Connection, KafkaSecurity, Secret
from light_scheduler.kafka import lasting_producer
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.model.lane_state import LaneState
from light_scheduler.settings import load_settings

AT = 1_767_225_600_000


class Targets(dict[str, TargetTopic]):
    async def resolve(self, names: set[str]) -> None:
        self.update({name: TargetTopic(4, 1_000_000, None, 0.0) for name in names})


def lane() -> Any:
    """All that the states need of a lane that has no table yet."""
    return SimpleNamespace(
        tp=TopicPartition("later", 3),
        state=LaneState.RESTORING,
        context=SimpleNamespace(targets=Targets()),
        copy=SimpleNamespace(table=None),
        counters=SimpleNamespace(restarts=0),
        is_closing=lambda: False,
    )


class Producer:
    """Keeps what is sent; while it `hangs`, nothing is acknowledged."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.hangs = False
        self.is_stopped = False

    async def send(
        self, topic: str, _value: bytes, *, key: bytes, partition: int, headers: Any
    ) -> asyncio.Future[None]:
        assert headers == [("zlib", b"true")]
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.hangs:
            self.sent.append((topic, partition))
            sent.set_result(None)
        return sent

    async def flush(self) -> None:
        pass

    async def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Producer, Any]]:
    """The producers that were started, each with its options."""
    found: list[tuple[Producer, Any]] = []

    async def start(options: Any) -> Producer:
        found.append((Producer(), options))
        return found[-1][0]

    monkeypatch.setattr(lasting_producer, "started_producer", start)
    return found


async def test_states_are_written_with_the_login_of_the_worker(started: list[tuple[Producer, Any]]) -> None:
    security = KafkaSecurity(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="u", sasl_password=Secret("p")
    )
    states = KarafkaStates(list, ["later"], Connection("kafka:9092", security), SettableClock(AT))
    await states._publish(lane())
    ((producer, options),) = started
    assert (options["security_protocol"], options["sasl_plain_username"]) == ("SASL_PLAINTEXT", "u")
    assert producer.sent == [("later_states", 3)]


def test_a_worker_gives_its_own_connection_to_the_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(
        {"commands_topics": "later:karafka", "data_dir": str(tmp_path), "security_protocol": "SSL"}, environment={}
    )
    made: list[Any] = []

    class Recorded(KarafkaStates):
        def __init__(self, *arguments: Any) -> None:
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(application, "KarafkaStates", Recorded)
    application.build(settings)
    assert made[0][1:3] == (["later"], settings.connection)


async def test_a_broker_that_does_not_acknowledge_holds_no_end_up(
    started: list[tuple[Producer, Any]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(karafka_states, "LAST_SENDS_TIMEOUT_S", 0.01)
    states = KarafkaStates(list, ["later"], "kafka:9092", SettableClock(AT))
    await states._publish(lane())
    producer = started[0][0]
    producer.hangs = True
    await asyncio.wait_for(states.on_stop(), 30)
    assert producer.is_stopped
    assert "cannot write the last states: TimeoutError" in caplog.text


async def test_a_state_that_cannot_be_written_is_told_by_another_producer(
    started: list[tuple[Producer, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(karafka_states, "SEND_TIMEOUT_S", 0.01)
    monkeypatch.setattr(karafka_states, "LOOK_S", 0.0)
    clock, partition = SettableClock(AT), lane()
    states = KarafkaStates(lambda: [partition], ["later"], "kafka:9092", clock)
    await states._publish(partition)
    started[0][0].hangs = True
    clock.set(AT + karafka_states.SOON_MS)
    async with states:
        async with asyncio.timeout(30):
            while len(started) < 2 or not started[1][0].sent:
                await asyncio.sleep(0)
    assert started[0][0].is_stopped
