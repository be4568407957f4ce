"""db-scheduler on PostgreSQL: threads of one process lock rows, run them and delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from light_scheduler.bench.workload import Workload

from . import postgres
from .java_peer import JavaPeer
from .postgres import Postgres
from .toolbox import DB_SCHEDULER_VERSION, JVM_OPTIONS


class DbScheduler(JavaPeer):
    title = "db-scheduler, PostgreSQL"
    program = "DbSchedulerPeer"
    properties: ClassVar[Mapping[str, object]] = {
        "threads": 20,
        "connections": 22,
        # Its documentation's recommendation for high throughput, polling with lock-and-fetch.
        "lower_limit_fraction_of_threads": 1.0,
        "upper_limit_fraction_of_threads": 4.0,
        "polling_interval_ms": 100,  # default: 10 s
        # Work of a killed scheduler is repeated after several of these intervals. By default that is half an hour.
        "heartbeat_interval_ms": 2_000,
        "missed_heartbeats_limit": 4,
    }
    settings: ClassVar[Mapping[str, object]] = {
        "polling_strategy": "lock-and-fetch",
        **properties,
        "jvm": JVM_OPTIONS,
        "postgresql": postgres.SETTINGS,
    }
    burst = 20_000
    patience_s = 40.0

    def open_store(self) -> None:
        self._postgres = Postgres(self._place.toolbox, self.file("postgres"))
        self._running.callback(self._postgres.close)

    def command(self) -> Sequence[str | Path]:
        return self.java("work")

    def environment(self) -> dict[str, str]:
        address = f"127.0.0.1:{self._postgres.port}/postgres?user={self._postgres.user}"
        return {"PEER_STORE": f"jdbc:postgresql://{address}&reWriteBatchedInserts=true"}

    def submit(self, work: Workload) -> float:
        return self.submit_by(self.java("submit", self.write(work, "work")))

    def left(self) -> int:
        return int(self._postgres.ask("select count(*) from scheduled_tasks"))

    def store_bytes(self) -> int:
        return self._postgres.data_bytes

    def versions(self) -> Mapping[str, str]:
        return {
            "db-scheduler": DB_SCHEDULER_VERSION,
            "postgresql": self._postgres.version,
            "java": self._place.toolbox.java_version,
        }
