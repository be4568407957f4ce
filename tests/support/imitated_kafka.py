"""librdkafka's own imitation of a cluster, for what is asked about logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

NO_LOG = logging.Logger("test", logging.CRITICAL + 1)


@contextmanager
def imitated_kafka(topic: str) -> Iterator[str]:
    """Yield the address of a cluster of one broker, which has a topic with one record."""
    imitation = Producer({"test.mock.num.brokers": 1, "log_level": 0}, logger=NO_LOG)
    (broker,) = imitation.list_topics(timeout=15).brokers.values()
    address = f"{broker.host}:{broker.port}"
    producer = Producer({"bootstrap.servers": address}, logger=NO_LOG)
    producer.produce(topic, b"")
    assert producer.flush(15) == 0
    yield address
    imitation.flush(0)  # the cluster is there for as long as its client
