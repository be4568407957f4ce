"""What a load says and does when its topic of marks cannot be read or written."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from light_scheduler.errors import JobError
from light_scheduler.pipeline.load.following import repeat
from light_scheduler.pipeline.load.job_marks import JobMarks, MarksAwayError
from light_scheduler.pipeline.load.marks import BatchMark, Marks

MARK = BatchMark(at=1_767_225_600_000, rows=1)
NO_RIGHT = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
AWAY = [
    KafkaException(KafkaError(KafkaError._TRANSPORT)),
    KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
    KafkaException(KafkaError(KafkaError._TIMED_OUT)),
    KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)),
    KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT)),
    TimeoutError("no record arrived within 120000 ms"),
]


@pytest.fixture
def marks() -> JobMarks:
    return JobMarks({"kafka.bootstrap.servers": "127.0.0.1:9"}, "orders-loads")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Let whatever is done with marks fail of an error."""

    def fail(error: Exception) -> None:
        def refuse(*_: object) -> None:
            raise error

        monkeypatch.setattr(Marks, "read_on", refuse)
        monkeypatch.setattr(Marks, "write", refuse)

    return fail


def test_a_right_that_is_missing_fails_the_job_and_is_named(
    marks: JobMarks, failing: Callable[[Exception], None]
) -> None:
    failing(NO_RIGHT)
    told = r"^topic orders-loads cannot be {}: .*[Aa]uthorization failed.* needs the rights Read and Write$"
    with pytest.raises(JobError, match=told.format("read")) as reading:
        marks.read_on()
    with pytest.raises(JobError, match=told.format("written")):
        marks.write(b"key", MARK)
    assert not reading.value.retriable


@pytest.mark.parametrize("error", AWAY, ids=repr)
def test_kafka_that_is_away_may_be_read_later_and_what_was_written_is_not_known(
    error: Exception, marks: JobMarks, failing: Callable[[Exception], None]
) -> None:
    failing(error)
    with pytest.raises(MarksAwayError, match=r"^topic orders-loads cannot be read: ") as reading:
        marks.read_on()
    assert reading.value.retriable
    with pytest.raises(JobError, match=r"^topic orders-loads cannot be written: ") as writing:
        marks.write(b"key", MARK)
    assert not writing.value.retriable


def test_a_load_that_goes_on_is_tried_again_while_kafka_is_away(caplog: pytest.LogCaptureFixture) -> None:
    stop, outcomes = threading.Event(), [None, MarksAwayError("away"), MarksAwayError("away"), None]
    loaded: list[int] = []

    def load() -> None:
        outcome = outcomes.pop(0)
        if not outcomes:
            stop.set()
        if outcome is not None:
            raise outcome
        loaded.append(len(outcomes))

    repeat(load, 0.001, stop)
    assert loaded == [3, 0]
    assert caplog.text.count("away. Trying again in 0.001 s") == 2


@pytest.mark.parametrize("before", [0, 1], ids=["first", "later"])
def test_a_load_that_goes_on_ends_with_any_other_failure(before: int) -> None:
    failure = JobError("the table is gone")
    left = [None] * before

    def load() -> None:
        if not left:
            raise failure
        left.pop()

    with pytest.raises(JobError) as raised:
        repeat(load, 0.001, threading.Event())
    assert raised.value is failure


def test_the_first_load_fails_if_kafka_is_away() -> None:
    def load() -> None:
        raise MarksAwayError("away")

    with pytest.raises(MarksAwayError):
        repeat(load, 0.001, threading.Event())
