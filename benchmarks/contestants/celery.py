"""Celery with Redis: tasks with an ETA, which a worker holds in memory until they are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from light_scheduler.bench.workload import Workload

from . import redis
from .peer import Peer
from .redis import Redis
from .toolbox import PROGRAMS

_PROGRAM = PROGRAMS / "celery_peer.py"


class Celery(Peer):
    title = "Celery, Redis"
    settings: ClassVar[Mapping[str, object]] = {
        "pool": "prefork",
        "concurrency": 2,
        "task_acks_late": True,  # at least once; by default, a task begun by a killed worker is lost
        "task_reject_on_worker_lost": True,
        "task_ignore_result": True,
        "worker_prefetch_multiplier": 4,
        # s; must be longer than the longest ETA; only after it, tasks of a killed worker come again. Default: an hour.
        "visibility_timeout": 60,
        "redis": redis.SETTINGS,
    }
    pending = 10_000
    burst = 5_000
    patience_s = 150.0

    def open_store(self) -> None:
        self._redis = Redis(self._place.toolbox.redis_server, self.file("redis"))
        self._running.callback(self._redis.close)

    def command(self) -> Sequence[str | Path]:
        return (self._place.toolbox.python, _PROGRAM, "work")

    def environment(self) -> dict[str, str]:
        return {"PEER_STORE": self._redis.url}

    def submit(self, work: Workload) -> float:
        return self.submit_by((self._place.toolbox.python, _PROGRAM, "submit", self.write(work, "work")))

    def left(self) -> int:
        return int(self._redis.ask("LLEN", "celery")) + int(self._redis.ask("HLEN", "unacked"))

    def store_bytes(self) -> int:
        return self._redis.memory_bytes

    def versions(self) -> Mapping[str, str]:
        installed = self._place.toolbox.python_versions
        return {"celery": installed["celery"], "kombu": installed["kombu"], "redis": self._redis.version}
