"""A coordinator that is not there yet is asked again; what it refuses is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from light_scheduler.connection.coordinators import settled


class Coordinator:
    """Answers with these errors, then with "yes"."""

    def __init__(self, *codes: int) -> None:
        self._codes: Iterator[int] = iter(codes)

    def ask(self) -> str:
        for code in self._codes:
            raise KafkaException(KafkaError(code))
        return "yes"


def test_a_coordinator_that_is_not_there_yet_is_asked_again() -> None:
    coordinator = Coordinator(KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    assert settled(coordinator.ask) == "yes"


@pytest.mark.parametrize(
    ("code", "timeout"),
    [(KafkaError.GROUP_AUTHORIZATION_FAILED, 60), (KafkaError.NOT_COORDINATOR, -1)],
    ids=["it refuses", "there is none in time"],
)
def test_what_does_not_pass_is_told(code: int, timeout: float) -> None:
    with pytest.raises(KafkaException) as raised:
        settled(Coordinator(code).ask, timeout)
    assert raised.value.args[0].code() == code
