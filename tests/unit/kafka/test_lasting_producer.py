"""The producer that services of a worker have beside its lanes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from light_scheduler.connection import Connection, KafkaSecurity, Secret
from light_scheduler.errors import BrokerUnreachable
from light_scheduler.kafka import lasting_producer
from light_scheduler.kafka.lasting_producer import LastingProducer

SECURITY = KafkaSecurity(
    security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="u", sasl_password=Secret("p")
)


class Producer:
    """Keeps what is sent; `answer` acknowledges it."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.sent: list[tuple[Any, ...]] = []
        self.answers: list[asyncio.Future[None]] = []
        self.is_stopped = False

    async def send(self, topic: str, value: bytes | None, **where: Any) -> asyncio.Future[None]:
        self.sent.append((topic, value, where))
        self.answers.append(asyncio.get_running_loop().create_future())
        return self.answers[-1]

    async def flush(self) -> None:
        pass

    async def stop(self) -> None:
        self.is_stopped = True


class Broker:
    """Has producers start, one after another, or refuses them; while it is not `open`, they wait."""

    def __init__(self) -> None:
        self.started: list[Producer] = []
        self.tries = 0
        self.error: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def start(self, options: Any) -> Producer:
        self.tries += 1
        await self.open.wait()
        if self.error is not None:
            raise self.error
        self.started.append(Producer(options))
        return self.started[-1]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(lasting_producer, "started_producer", broker.start)
    return broker


async def test_a_producer_is_started_by_the_first_record_with_the_login_of_its_connection(broker: Broker) -> None:
    producer = LastingProducer(Connection("kafka:9092", SECURITY))
    assert not broker.tries
    sent = await producer.send("t", b"v", partition=3, key=b"k", headers=[("h", b"1")])
    await producer.send("t", None, partition=4)
    (started,) = broker.started
    assert started.options["sasl_plain_username"] == "u"
    assert started.sent == [
        ("t", b"v", {"partition": 3, "key": b"k", "headers": [("h", b"1")]}),
        ("t", None, {"partition": 4, "key": None, "headers": None}),
    ]
    assert not sent.done(), "it is not acknowledged"
    started.answers[0].set_result(None)
    await sent


async def test_many_who_send_at_once_share_one_producer(broker: Broker) -> None:
    producer = LastingProducer("kafka:9092")
    broker.open.clear()
    sending = [asyncio.create_task(producer.send("t", b"v", partition=number)) for number in range(3)]
    while not broker.tries:
        await asyncio.sleep(0)
    broker.open.set()
    await asyncio.gather(*sending)
    assert broker.tries == 1
    assert len(broker.started[0].sent) == 3


async def test_a_producer_that_cannot_be_started_is_tried_again_by_the_next_record(broker: Broker) -> None:
    producer = LastingProducer("kafka:9092")
    broker.error = BrokerUnreachable("kafka:9092")
    with pytest.raises(BrokerUnreachable):
        await producer.send("t", b"v", partition=0)
    broker.error = None
    await producer.send("t", b"v", partition=0)
    assert (broker.tries, len(broker.started)) == (2, 1)


async def test_after_a_reset_another_producer_sends(broker: Broker) -> None:
    producer = LastingProducer("kafka:9092")
    await producer.send("t", b"1", partition=0)
    await producer.reset()
    await producer.send("t", b"2", partition=0)
    first, second = broker.started
    assert (first.is_stopped, second.is_stopped) == (True, False)
    assert [value for _, value, _ in second.sent] == [b"2"]
    await producer.close()
    assert second.is_stopped


async def test_what_never_sent_anything_has_nothing_to_stop(broker: Broker) -> None:
    producer = LastingProducer("kafka:9092")
    await producer.reset()
    await producer.close()
    assert not broker.tries
