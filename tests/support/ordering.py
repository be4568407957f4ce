"""Sending to a real Kafka in an order that lasts."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaException, Producer


def ordered_producer(bootstrap_servers: str) -> Producer:
    """Return a producer that keeps a partition's order over retries; serving one that failed raises KafkaException.

    Without idempotence a topic that is new can take a second batch before the first, which it refused once.
    """
    return Producer(
        {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 20, "on_delivery": _check}
    )


def _check(error: Any, _message: object) -> None:
    if error is not None:
        raise KafkaException(error)
