"""Marks of a load: with the records or not at all, and never passed over."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, Producer
from support.kafka_records import decided_records
from support.loading import AT, Load, marks_of, parquet
from support.placing import delete_topic

from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.kafka.options import WriteOptions
from light_scheduler.pipeline.load import marks as marks_module
from light_scheduler.pipeline.load.columns import Column
from light_scheduler.pipeline.load.marks import BatchMark, MarkingProducer, Marks
from light_scheduler.pipeline.load.records import RecordMaker
from light_scheduler.pipeline.load.task import LoadTask
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

TIMEOUT_S = 60.0
MARK = BatchMark(1, 2)
STORED = b'{"at":1,"rows":2}'
SET = {"target-topic": "t", "at": str(AT)}


class Place:
    """A commands topic and a topic of marks."""

    def __init__(self, kafka: Kafka, prefix: str) -> None:
        self.commands, self.marks = f"{prefix}-commands", f"{prefix}-loads"
        self.connection = Cluster(kafka.bootstrap_servers).options()
        self.client = WriteOptions.parse(self.connection).client
        for topic in (self.commands, self.marks):
            create_topic(kafka.bootstrap_servers, topic, 1)

    def producer(self, name: str) -> MarkingProducer:
        return MarkingProducer(self.client, f"{self.commands}-{name}", self.connection, self.marks)

    def read(self) -> Marks:
        """Return the marks as a process reads them that knows of none."""
        marks = Marks(self.connection, self.marks)
        marks.read_on()
        return marks


@pytest.fixture
def place(kafka: Kafka, prefix: str) -> Place:
    return Place(kafka, prefix)


def test_a_mark_is_there_with_its_records_and_an_aborted_one_is_not(kafka: Kafka, place: Place) -> None:
    producer = place.producer("a")
    with producer.transaction({b"done": MARK}) as delivery:
        delivery.send(place.commands, b"k", b"v")
    with pytest.raises(KafkaException, match="Unknown partition"), producer.transaction({b"failed": MARK}) as delivery:
        delivery.send(place.commands, b"k", b"w", partition=7)
    for marks in (place.read(), producer.marks):
        assert marks.get(b"done", BatchMark) == BatchMark(1, 2)
        assert marks.get(b"failed", BatchMark) is None
    assert [record.value for record in decided_records(kafka, place.commands)] == [b"v"]


def test_marks_of_a_topic_that_was_made_again_are_those_of_the_new_one(kafka: Kafka, place: Place) -> None:
    marks = place.read()
    for key in (b"one", b"other"):
        marks.write(key, MARK)
    made_again(kafka, place.marks)
    new = place.read()
    for number in range(9):  # more than there were
        new.write(b"new %d" % number, MARK)
    marks.read_on()
    assert [marks.get(key, BatchMark) for key in (b"one", b"other", b"new 0")] == [None, None, MARK]


def test_rows_are_sent_again_once_the_topic_of_marks_was_made_again(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    rows = parquet(tmp_path / "rows.parquet", id=["a", "b", "c"])
    assert load(rows, constants=SET).sent == 3
    made_again(kafka, marks_of(topic))
    assert load(rows, constants=SET).sent == 3


def made_again(kafka: Kafka, topic: str) -> None:
    delete_topic(kafka.bootstrap_servers, topic)
    create_topic(kafka.bootstrap_servers, topic, 1)


def test_marks_are_written_by_one_producer_until_it_fails(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    producers: list[Producer] = []

    def producer(*arguments: Any, **keywords: Any) -> Producer:
        producers.append(Producer(*arguments, **keywords))
        return producers[-1]

    monkeypatch.setattr(marks_module, "Producer", producer)
    marks = place.read()
    for key in (b"begun", b"loaded"):
        marks.write(key, MARK)
    assert len(producers) == 1
    with pytest.raises(KafkaException):
        marks.write(b"large", msgspec.structs.replace(MARK, by=os.urandom(3_000_000).hex()))
    marks.write(b"after it", MARK)
    assert len(producers) == 2, "one that has failed is not used again"
    found = place.read()
    assert [found.get(key, BatchMark) for key in (b"begun", b"loaded", b"large", b"after it")] == [
        MARK,
        MARK,
        None,
        MARK,
    ]


def test_a_task_that_is_run_again_counts_what_it_sent_and_a_later_run_does_not(kafka: Kafka, place: Place) -> None:
    columns = tuple(Column(name, name.replace("_", "-")) for name in ("id", "target_topic", "every"))
    maker = RecordMaker(columns, {}, NO_LIMITS)
    task = LoadTask(maker, place.commands, "load", place.marks, place.connection)

    def sent(task: LoadTask, *files: str) -> list[int]:
        cells = {"id": ["a", "b"], "target_topic": ["t", "t"], "every": ["1h", "1h"]}
        places = [{"_file": [file] * 2, "_block": [0, 0], "_size": [9, 9], "_modified": [1, 1]} for file in files]
        reports = task(pa.RecordBatch.from_pydict({**cells, **each}) for each in places)
        return [report.column("sent").to_pylist()[-1] for report in reports]

    assert sent(task, "one", "a copy") == [2, 0]
    assert sent(task, "one", "a copy") == [2, 0], "tried again"
    assert sent(replace(task, run="later"), "one", "a copy") == [0, 0]
    assert len(decided_records(kafka, place.commands)) == 2


def test_a_successor_ends_what_a_killed_producer_left_open(kafka: Kafka, place: Place) -> None:
    killed = place.producer("a")
    fenced = ExitStack()
    delivery = fenced.enter_context(killed.transaction({b"late": MARK}))
    delivery.send(place.commands, b"k", b"v")
    delivery.finish()
    successor = place.producer("a")
    with pytest.raises(KafkaException):
        fenced.close()
    assert successor.marks.get(b"late", BatchMark) is None
    with successor.transaction({b"late": MARK}) as delivery:
        delivery.send(place.commands, b"k", b"v")
    assert len(decided_records(kafka, place.commands)) == 1


def test_a_mark_behind_a_transaction_that_is_not_decided_is_waited_for(place: Place) -> None:
    undecided = Producer({**place.client, "transactional.id": f"{place.commands}-undecided"})
    undecided.init_transactions(TIMEOUT_S)
    undecided.begin_transaction()
    undecided.produce(place.marks, STORED, b"undecided", partition=0)
    assert undecided.flush(TIMEOUT_S) == 0
    behind = threading.Event()
    found: list[Marks] = []

    def look() -> None:
        marks = Marks(place.connection, place.marks)
        behind.wait(TIMEOUT_S)
        marks.read_on()
        found.append(marks)

    reader = threading.Thread(target=look)
    reader.start()
    blind = Producer({**place.client, "transactional.id": f"{place.commands}-behind"})
    blind.init_transactions(TIMEOUT_S)
    blind.begin_transaction()
    blind.produce(place.marks, STORED, b"behind", partition=0)
    blind.commit_transaction(TIMEOUT_S)
    behind.set()
    reader.join(0.5)
    assert found == [], "it would not know of the mark behind"
    undecided.abort_transaction(TIMEOUT_S)
    reader.join(TIMEOUT_S)
    assert found[0].get(b"behind", BatchMark) == BatchMark(1, 2)
    assert found[0].get(b"undecided", BatchMark) is None
