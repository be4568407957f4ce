"""APScheduler 3 with its jobs in PostgreSQL. As it requires, the scheduler and the code that adds jobs are one
process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from light_scheduler.bench.workload import Workload

from . import postgres
from .contestant import await_that
from .peer import Peer
from .postgres import Postgres
from .toolbox import PROGRAMS

_SUBMIT_S = 300.0


class ApScheduler(Peer):
    title = "APScheduler, PostgreSQL"
    settings: ClassVar[Mapping[str, object]] = {
        "job_store": "sqlalchemy",
        "threads": 10,
        # None: late jobs still run. By default, jobs that are 1 s late are dropped, which is most of a burst.
        "misfire_grace_time": None,
        "postgresql": postgres.SETTINGS,
    }
    pending = 2_000
    burst = 2_000

    def open_store(self) -> None:
        self._postgres = Postgres(self._place.toolbox, self.file("postgres"))
        self._running.callback(self._postgres.close)

    def command(self) -> Sequence[str | Path]:
        return (self._place.toolbox.python, PROGRAMS / "apscheduler_peer.py")

    def environment(self) -> dict[str, str]:
        return {"PEER_STORE": f"postgresql+psycopg://{self._postgres.address}"}

    def submit(self, work: Workload) -> float:
        submitted = self.file("submitted")
        submitted.unlink(missing_ok=True)
        self.write(work, "work")
        await_that(submitted.exists, "APScheduler's taking work", _SUBMIT_S)
        return float(submitted.read_text(encoding="ascii"))

    def left(self) -> int:
        return int(self._postgres.ask("select count(*) from apscheduler_jobs"))

    def store_bytes(self) -> int:
        return self._postgres.data_bytes

    def versions(self) -> Mapping[str, str]:
        installed = self._place.toolbox.python_versions
        packages = {name: installed[name] for name in ("apscheduler", "sqlalchemy", "psycopg")}
        return {**packages, "postgresql": self._postgres.version}
