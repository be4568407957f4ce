"""Sends a round's commands as fast as librdkafka can."""

from __future__ import annotations

import logging
from typing import Any

from confluent_kafka import KafkaException, Producer

from light_scheduler.errors import BrokerError

from .progress import Progress
from .workload import Workload

_SILENT = logging.Logger("light_scheduler.bench.producing", logging.CRITICAL + 1)
_CONFIGURATION = {
    "partitioner": "murmur2_random",  # Kafka's own; librdkafka has another default
    "enable.idempotence": True,  # a retry must not become a second command
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 200_000,
    "delivery.report.only.error": True,
}
_SERVE_EVERY = 1_000
_FLUSH_S = 60.0


def produce(bootstrap_servers: str, topic: str, workload: Workload, progress: Progress) -> None:
    """Send all commands of a workload and wait until they are acknowledged. Raises BrokerError if one is not."""
    failures: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "on_delivery": lambda error, _message: failures.append(error),
            **_CONFIGURATION,
        },
        logger=_SILENT,
    )
    try:
        for number, command in enumerate(workload.commands()):
            _enqueue(producer, topic, command.key, command.value, list(command.headers))
            if number % _SERVE_EVERY == 0:
                producer.poll(0)
                progress.done(number)
    except KafkaException as error:
        raise BrokerError(f"commands could not be sent: {error}") from error
    left = producer.flush(_FLUSH_S)
    if failures or left:
        cause = failures[0] if failures else f"no answer within {_FLUSH_S:g} s"
        raise BrokerError(f"{len(failures) + left} commands were not acknowledged: {cause}")


def _enqueue(producer: Producer, topic: str, key: bytes, value: bytes, headers: list[Any]) -> None:
    while True:
        try:
            producer.produce(topic, value, key, headers=headers)
            return
        except BufferError:  # the queue is full: wait until it has room
            producer.poll(0.05)
