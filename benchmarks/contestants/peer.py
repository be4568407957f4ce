"""A peer: a scheduler whose program runs in its own environment and records its deliveries.

Work is submitted as a file with a line per schedule: `key due payload`, with due in UTC epoch ms and the payload in
hex.
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
    """A scheduler of another project. Its process creates a file when it accepts work."""

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
        """Start the store, and register how to end it in `_running`."""

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the command that runs the scheduler."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return environment variables for the program, besides those for every program."""

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
        """Write work to a file, which gets its name when it is complete."""
        partial, path = self.file("partial"), self.file(name)
        with partial.open("w", encoding="ascii") as file:
            for number, command in enumerate(work.commands()):
                file.write(f"{command.key.decode()} {work.due_of(number)} {command.value.hex()}\n")
        return partial.rename(path)

    def submit_by(self, command: Sequence[str | Path]) -> float:
        """Run a program that submits work, and then writes the seconds that it took to the file `submitted`."""
        process = self.run(command)
        if process.wait() != 0:
            raise SchedulerError(f"{self.title} did not take the work. {self.log_end()}")
        return float(self.file("submitted").read_text(encoding="ascii"))

    def log_end(self) -> str:
        """Return the last lines of the programs' output, and its path."""
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
