"""Waits for Kafka's coordinators, which can be unavailable briefly while a cluster starts or its brokers change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

TIMEOUT_S = 60.0
_PAUSE_S = 0.1
_UNSETTLED = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)

T = TypeVar("T")


def settled(ask: Callable[[], T], timeout: float = TIMEOUT_S) -> T:
    """Call `ask` until a coordinator answers, for at most `timeout` s. Raises KafkaException."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _UNSETTLED or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
