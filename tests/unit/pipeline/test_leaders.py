"""Questions about partitions without a leader: asked again, within a bound."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from light_scheduler.pipeline.kafka.leaders import answered

PASSING = [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE]
LASTING = [
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
]


def failing(code: int, times: int) -> tuple[Callable[[], str], list[int]]:
    """Return a question that fails so many times before it is answered, and the list of its failures."""
    failed: list[int] = []

    def ask() -> str:
        if len(failed) < times:
            failed.append(code)
            raise KafkaException(KafkaError(code))
        return "an answer"

    return ask, failed


@pytest.mark.parametrize("code", PASSING)
def test_a_question_is_asked_again_while_its_partition_has_no_leader(code: int) -> None:
    ask, failed = failing(code, 2)
    assert answered(ask, time.monotonic() + 60) == "an answer"
    assert len(failed) == 2


@pytest.mark.parametrize("code", PASSING)
def test_a_partition_that_gets_no_leader_is_an_error_in_the_end(code: int) -> None:
    ask, _ = failing(code, 1_000)
    with pytest.raises(KafkaException) as error:
        answered(ask, time.monotonic() + 0.2)
    assert error.value.args[0].code() == code


@pytest.mark.parametrize("code", LASTING)
def test_another_error_is_raised_at_once(code: int) -> None:
    ask, failed = failing(code, 1)
    with pytest.raises(KafkaException):
        answered(ask, time.monotonic() + 60)
    assert len(failed) == 1
