"""Queries about partitions without a leader, or with another leader than the client knows.

This happens right after a topic is created, and while a broker is replaced. After such an answer the client looks up
the leader again, so a repeated query soon succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

T = TypeVar("T")

LEADERLESS = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_RETRY_S = 0.1


def answered(ask: Callable[[], T], deadline: float) -> T:
    """Return the result of a query, repeating it until a deadline (monotonic, s) if there is no leader.

    Raises KafkaException for any other error, and for this one after the deadline.
    """
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in LEADERLESS or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_S)


def without_errors(places: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
    """Return partitions in a client's answer. Raises KafkaException if one of them has an error."""
    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)
    return places
