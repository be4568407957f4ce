"""Questions about partitions that have another leader than the client knows of, or none yet.

So it is right after a topic was created, and while a broker is replaced. After such an answer the client looks for the
leader again, so the same question is answered soon.
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
    """Return what a question is answered with, asked again for lack of a leader until a deadline (monotonic, s).

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
    """Return places that a client has answered with. Raises KafkaException if one of them bears an error instead."""
    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)
    return places
