"""What the machine and the broker make anybody wait: told beside lateness, so that one sees whose it is."""

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
        self.longest_ms = 0
        """How long the longest transaction took."""
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

    def _write(self) -> None:
        now = SystemClock().now
        while not self._ending.wait(PAUSE_S):
            begun_at = now()
            self._producer.begin_transaction()
            self._producer.produce(self._topic, b"")
            self._producer.commit_transaction(TIMEOUT_S)
            self.longest_ms = max(self.longest_ms, now() - begun_at)
