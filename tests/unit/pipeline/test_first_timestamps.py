"""The first records of many ranges, in librdkafka's own imitation of a cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from light_scheduler.pipeline.kafka import fetching
from light_scheduler.pipeline.kafka.fetching import first_timestamps
from light_scheduler.pipeline.kafka.options import ReadOptions
from light_scheduler.pipeline.kafka.ranges import OffsetRange

M = 1_767_225_600_000
NO_LOG = logging.Logger("test", logging.CRITICAL + 1)
TOPIC, PARTITIONS, RECORDS = "orders", 4, 50


def options(bootstrap_servers: str) -> ReadOptions:
    parts = str([*range(PARTITIONS)])
    given = {"kafka.bootstrap.servers": bootstrap_servers, "assign": f'{{"{TOPIC}": {parts}}}'}
    return ReadOptions.parse({**given, "kafkaConsumer.pollTimeoutMs": "1000"}, streaming=False)


@pytest.fixture
def bootstrap_servers() -> Iterator[str]:
    """A topic with records of 10 kB: those of partition 2 begin at M + 2000, and there is one each ms."""
    imitation = Producer({"test.mock.num.brokers": 1, "log_level": 0}, logger=NO_LOG)
    (broker,) = imitation.list_topics(timeout=15).brokers.values()
    address = f"{broker.host}:{broker.port}"
    producer = Producer({"bootstrap.servers": address, "batch.num.messages": 1}, logger=NO_LOG)
    for partition in range(PARTITIONS):
        for number in range(RECORDS):
            timestamp = M + 1_000 * partition + number
            producer.produce(TOPIC, b"x" * 10_000, partition=partition, timestamp=timestamp)
    assert producer.flush(15) == 0
    yield address
    imitation.flush(0)  # the cluster is there for as long as its client


class Noted:
    """A consumer, and how many records were taken from it."""

    made: int = 0
    taken: int = 0

    def __init__(self, configuration: dict[str, Any], **rest: Any) -> None:
        Noted.made += 1
        self._consumer = Consumer(configuration, **rest)

    def consume(self, *args: Any) -> list[Any]:
        found: list[Any] = self._consumer.consume(*args)
        Noted.taken += len(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)


def test_the_first_records_of_all_partitions_are_read_by_one_consumer_and_no_more(
    bootstrap_servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "Consumer", Noted)
    monkeypatch.setattr(Noted, "made", 0)
    monkeypatch.setattr(Noted, "taken", 0)
    starts = {0: 0, 1: 7, 2: 49, 3: RECORDS}
    wanted = [OffsetRange(TOPIC, partition, start, RECORDS) for partition, start in starts.items()]
    found = first_timestamps(options(bootstrap_servers), wanted)
    assert found == {(TOPIC, 0): M, (TOPIC, 1): M + 1_007, (TOPIC, 2): M + 2_049}
    assert Noted.made == 1
    assert Noted.taken <= 2 * len(found) + 1, "and the end of a partition"


def test_nothing_is_asked_if_there_are_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "Consumer", None)
    assert first_timestamps(options("127.0.0.1:9"), [OffsetRange(TOPIC, 0, 5, 5)]) == {}


def test_a_cluster_that_does_not_answer_is_waited_for_no_longer_than_asked() -> None:
    with pytest.raises(TimeoutError, match=r"orders-0\[0, 5\): no record arrived within 1000 ms"):
        first_timestamps(options("127.0.0.1:9"), [OffsetRange(TOPIC, 0, 0, 5)])


class Arriving:
    """A message or an event of partition 0, as a consumer returns them."""

    def __init__(self, offset: int, error: int | None = None) -> None:
        self._offset, self._error = offset, error

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 0, M + self._offset

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error)


EOF = KafkaError._PARTITION_EOF


@pytest.mark.parametrize(
    ("arriving", "expected"),
    [
        ([Arriving(7)], {(TOPIC, 0): M + 7}),
        ([Arriving(0, KafkaError._TRANSPORT), Arriving(7)], {(TOPIC, 0): M + 7}),
        ([Arriving(9)], {}),
        ([Arriving(9, EOF)], {}),
        ([Arriving(8, EOF), Arriving(8), Arriving(9)], {(TOPIC, 0): M + 8}),
    ],
    ids=["a record", "a record after an error that passes", "a later record", "the end", "a record after the end"],
)
def test_a_range_may_have_no_record_but_the_marks_of_transactions(
    arriving: list[Arriving], expected: dict[Any, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "Consumer", lambda *_, **__: Scripted([arriving]))
    assert first_timestamps(options("127.0.0.1:9"), [OffsetRange(TOPIC, 0, 5, 9)]) == expected


def test_an_error_that_does_not_pass_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted([[Arriving(0, KafkaError.TOPIC_AUTHORIZATION_FAILED)]])
    monkeypatch.setattr(fetching, "Consumer", lambda *_, **__: scripted)
    with pytest.raises(KafkaException):
        first_timestamps(options("127.0.0.1:9"), [OffsetRange(TOPIC, 0, 5, 9)])
    assert scripted.is_closed


class Scripted:
    """A consumer that returns what it was given."""

    def __init__(self, arriving: list[list[Arriving]]) -> None:
        self._arriving = arriving
        self.is_closed = False

    def assign(self, places: list[Any]) -> None:
        assert [place.offset for place in places] == [5]

    def consume(self, number: int, timeout: float) -> list[Arriving]:
        return self._arriving.pop(0)

    def pause(self, places: list[Any]) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True
