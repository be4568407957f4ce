"""A peer: a scheduler whose program runs in its own environment and writes down what it delivers.

Work is handed over in a file, a line for each schedule: `key due payload`, due in UTC epoch ms, the payload in hex.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from light_scheduler.bench.workload import Workload
from light_scheduler.devkit.leash import Leash
from light_scheduler.errors import SchedulerError

from .arrivals import Arrivals, WrittenArrivals
from .contestant import Contestant, Workspace, await_that


class Peer(Contestant):
    """A scheduler that is no part of ours. Its process says by a file that it takes work."""

    def __init__(self, place: Workspace) -> None:
        super().__init__(place)
        self._arrivals = WrittenArrivals(self.file("arrivals"))
        self._process: Leash | None = None

    @property
    def arrivals(self) -> Arrivals:
        return self._arrivals

    @property
    def pid(self) -> int:
        return self._scheduler.pid

    @property
    def _scheduler(self) -> Leash:
        if self._process is None:
            raise SchedulerError(f"{self.title} was not started")
        return self._process

    @abstractmethod
    def open_store(self) -> None:
        """Start the store; what ends it belongs into `_running`."""

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the command that runs the scheduler."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return what the program reads from its environment, besides what every program does."""

    def file(self, name: str) -> Path:
        return self._place.folder / name

    def open(self) -> None:
        self.open_store()
        self._running.callback(self._stop)
        self.restart()
        await_that(lambda: self.file("ready").exists() or self._has_ended(), f"the start of {self.title}")
        if self._has_ended():
            raise SchedulerError(f"{self.title} ended instead of starting. {self.log_end()}")

    def restart(self) -> None:
        self.file("ready").unlink(missing_ok=True)
        self._process = self.run(self.command())

    def kill(self) -> None:
        self._scheduler.kill()

    def run(self, command: Sequence[str | Path]) -> Leash:
        """Start one of the peer's programs."""
        with self.file("log").open("ab") as log:
            return Leash(command, environment=self._environment(), output=log, folder=self._place.folder)

    def write(self, work: Workload, name: str) -> Path:
        """Write work into a file; it has its name once it is whole."""
        partial, path = self.file("partial"), self.file(name)
        with partial.open("w", encoding="ascii") as file:
            for number, command in enumerate(work.commands()):
                file.write(f"{command.key.decode()} {work.due_of(number)} {command.value.hex()}\n")
        return partial.rename(path)

    def submit_by(self, command: Sequence[str | Path]) -> float:
        """Run a program that hands in work and then writes into the file `submitted` how many seconds that took."""
        process = self.run(command)
        if process.wait() != 0:
            raise SchedulerError(f"{self.title} did not take the work. {self.log_end()}")
        return float(self.file("submitted").read_text(encoding="ascii"))

    def log_end(self) -> str:
        """Return the last lines of what the programs said, and where it is."""
        lines = self.file("log").read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        return f"{self.file('log')} ends with:\n" + "\n".join(lines)

    def _environment(self) -> dict[str, str]:
        names = {"PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR"}
        return {
            **{name: value for name, value in os.environ.items() if name in names},
            "PEER_FOLDER": str(self._place.folder),
            "PEER_SETTINGS": json.dumps(self.settings),
            **self.environment(),
        }

    def _has_ended(self) -> bool:
        return self._scheduler.poll() is not None

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
