"""What the machine and the broker make anybody wait: what a test of lateness compares with, in the same run."""

from __future__ import annotations

import threading
import uuid
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.topic_admin import create_topic

from .arrivals import SILENT

PAUSE_S = 0.02
TIMEOUT_S = 60.0
SLOW_MS = 100
"""A transaction of one record that takes longer has waited for a machine, or a broker, that stood still."""


class Witness:
    """Writes transactions of one record in a thread, one after the other, without any scheduler. A context manager.

    A machine that stands still, or a broker that does, is seen here as it is by a worker.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        name = f"witness-{uuid.uuid4().hex[:8]}"
        self._bootstrap_servers, self._topic = bootstrap_servers, name
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "transactional.id": name, "linger.ms": 0}, logger=SILENT
        )
        self._slow: list[tuple[int, int]] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write, name="Witness", daemon=True)

    def __enter__(self) -> Self:
        create_topic(self._bootstrap_servers, self._topic, 1)
        self._producer.init_transactions(TIMEOUT_S)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()

    def waited_ms(self, since: int, until: int) -> int:
        """Return how long, between two instants (UTC epoch ms), this waited in transactions that were slow."""
        return sum(max(0, min(ended_at, until) - max(begun_at, since)) for begun_at, ended_at in self._slow)

    def beyond(self, due: int, lateness: int) -> int:
        """Return how much later (ms) something came than this waited meanwhile."""
        return lateness - self.waited_ms(due, due + lateness)

    def _write(self) -> None:
        now = SystemClock().now
        while not self._ending.wait(PAUSE_S):
            begun_at = now()
            self._producer.begin_transaction()
            self._producer.produce(self._topic, b"")
            self._producer.commit_transaction(TIMEOUT_S)
            if (ended_at := now()) - begun_at > SLOW_MS:
                self._slow.append((begun_at, ended_at))
