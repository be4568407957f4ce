"""What an archive notes of records that were deleted before it read them."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import nullcontext
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException

from light_scheduler.errors import JobError
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.kafka.positions import Position
from light_scheduler.pipeline.losses import Loss, LossWatch, noting_losses, position_in


class Topics:
    """Where the logs of topics begin, and the ids of the topics."""

    def __init__(self) -> None:
        self.known = {"a": "id-a", "b": "id-b"}
        self.begins = {("a", 0): 0, ("a", 1): 0, ("b", 0): 0}
        self.is_away = False
        self.timeouts: list[float] = []

    def ids(self, timeout: float) -> dict[str, str]:
        self.timeouts.append(timeout)
        if self.is_away:
            raise KafkaException("away")
        return dict(self.known)

    def earliest_of(self, parts: Collection[tuple[str, int]], timeout: float) -> dict[tuple[str, int], int]:
        self.timeouts.append(timeout)
        return {part: self.begins[part] for part in parts}


def at(offset: int, **ids: str) -> Position:
    return Position(dict.fromkeys([("a", 0), ("a", 1), ("b", 0)], offset), {"a": "id-a", "b": "id-b", **ids})


@pytest.fixture
def topics() -> Topics:
    return Topics()


@pytest.fixture
def noted() -> list[Loss]:
    return []


def test_what_went_before_the_run_is_noted_at_its_first_look(topics: Topics, noted: list[Loss]) -> None:
    topics.begins["a", 1] = 11
    LossWatch(topics, at(10), noted.extend).look(None)
    assert noted == [Loss("a", 1, 11)]


def test_what_goes_later_is_noted_though_the_stream_has_passed_it_by_then(topics: Topics, noted: list[Loss]) -> None:
    watch = LossWatch(topics, at(10), noted.extend)
    watch.look(None)
    topics.begins["b", 0] = 15
    watch.look(at(20))
    assert noted == [Loss("b", 0, 15)]
    topics.begins["b", 0] = 19
    watch.look(at(30))
    assert noted == [Loss("b", 0, 15)], "what was read before it went is not lost"


@pytest.fixture
def standing(topics: Topics, noted: list[Loss]) -> LossWatch:
    """A watch over a stream that stands still while retention deletes on; one loss is noted."""
    watch = LossWatch(topics, at(10), noted.extend)
    for begin in (15, 15, 16, 17, 18):
        topics.begins["a", 0] = begin
        watch.look(at(10))
    assert noted == [Loss("a", 0, 15)]
    return watch


def test_what_goes_on_going_while_the_stream_stands_still_is_noted_when_it_has_moved(
    standing: LossWatch, noted: list[Loss]
) -> None:
    for _ in range(3):
        standing.look(at(20))
    assert noted == [Loss("a", 0, 15), Loss("a", 0, 18)]


def test_what_goes_on_going_while_the_stream_stands_still_is_noted_at_the_end(
    standing: LossWatch, noted: list[Loss]
) -> None:
    standing.end(at(10))
    assert noted == [Loss("a", 0, 15), Loss("a", 0, 18)]


def test_a_loss_of_another_partition_does_not_wait(topics: Topics, standing: LossWatch, noted: list[Loss]) -> None:
    topics.begins["b", 0] = 11
    standing.look(at(10))
    assert noted == [Loss("a", 0, 15), Loss("b", 0, 11)]


def test_a_topic_that_is_created_again_later_is_noted_once(topics: Topics, noted: list[Loss]) -> None:
    watch = LossWatch(topics, at(10), noted.extend)
    watch.look(at(10))
    topics.known["a"] = "id-of-another"
    watch.look(at(10))
    watch.look(at(3, a="id-of-another"))
    watch.look(at(3, a="id-of-another"))
    assert noted == [Loss("a", 0, None)]


def test_a_stream_that_has_not_begun_lacks_nothing(topics: Topics, noted: list[Loss]) -> None:
    topics.begins["a", 0] = 100
    watch = LossWatch(topics, None, noted.extend)
    watch.look(None)
    watch.look(at(100))
    assert noted == []
    topics.begins["a", 0] = 101
    watch.look(None)
    assert noted == [Loss("a", 0, 101)]


def test_a_look_without_an_answer_leaves_its_losses_to_the_next(topics: Topics, noted: list[Loss]) -> None:
    watch = LossWatch(topics, at(10), noted.extend)
    topics.begins["a", 0] = 15
    topics.is_away = True
    watch.look_if_possible(at(20))
    with pytest.raises(KafkaException):
        watch.look(at(20))
    topics.is_away = False
    watch.look_if_possible(at(30))
    assert noted == [Loss("a", 0, 15)]


def test_a_look_asks_twice_for_all_partitions_and_waits_a_few_seconds(topics: Topics, noted: list[Loss]) -> None:
    LossWatch(topics, at(10), noted.extend).look_if_possible(at(20))
    assert len(topics.timeouts) == 2
    assert sum(topics.timeouts) <= 10


@pytest.mark.parametrize("fault", [Py4JError("no disk"), AnalysisException("no folder"), KafkaException("away")])
def test_a_loss_that_cannot_be_noted_is_left_to_the_next_look(
    topics: Topics, noted: list[Loss], caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    faults = [fault]

    def note(lost: list[Loss]) -> None:
        if faults:
            raise faults.pop()
        noted.extend(lost)

    watch = LossWatch(topics, at(10), note)
    topics.begins["a", 0] = 15
    watch.look_if_possible(at(20))
    assert (noted, len(caplog.records)) == ([], 1)
    watch.look_if_possible(at(30))
    assert noted == [Loss("a", 0, 15)]


def test_a_loss_that_cannot_be_noted_at_the_end_is_an_error(topics: Topics) -> None:
    def note(lost: list[Loss]) -> None:
        raise Py4JError(f"no disk for {lost}")

    topics.begins["a", 0] = 15
    with pytest.raises(Py4JError, match="no disk"):
        LossWatch(topics, at(10), note).end(at(20))


@pytest.mark.parametrize("encode", [json.dumps, dict])
def test_a_position_is_in_what_spark_tells_of_its_progress(encode: Any) -> None:
    told = {"a": {"0": 7}, "#ids": {"a": "id-a"}}
    assert position_in({"sources": [{"endOffset": encode(told)}]}) == Position({("a", 0): 7}, {"a": "id-a"})


@pytest.mark.parametrize("progress", [None, {"sources": [{"endOffset": None}]}, {"sources": [{"endOffset": "null"}]}])
def test_a_stream_that_has_read_nothing_has_no_position(progress: Any) -> None:
    assert position_in(progress) is None


def test_topics_that_cannot_be_read_when_an_archive_begins_fail_the_job(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_timeout: float) -> dict[str, str]:
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    monkeypatch.setattr(topics, "ids", refused)
    monkeypatch.setattr("light_scheduler.pipeline.losses.LogEnds", lambda _: nullcontext(topics))
    monkeypatch.setattr("light_scheduler.pipeline.losses.position", lambda *_: at(10))
    session: Any = None
    with (
        pytest.raises(JobError, match=r"^a, b cannot be read: .*authorization failed"),
        noting_losses(session, "/archive", "/checkpoint", Cluster("127.0.0.1:9"), ["a", "b"]),
    ):
        pytest.fail("the archive has begun")
