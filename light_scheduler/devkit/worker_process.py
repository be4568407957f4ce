"""A worker as a child process on a leash, for `up` and the demonstration."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from light_scheduler.errors import SchedulerError
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings
from light_scheduler.settings.texts import setting_text
from light_scheduler.worker_page import page_of_worker

from .leash import Leash, WhenOrphaned

_LAST_LINES = 15
_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 2.0


class WorkerProcess:
    """One `faust worker` with its own settings. It can be stopped and started again with the same state.

    If `processes` is set, it is a node of that number of processes: one `light-scheduler worker`.

    Its output is appended to the file `log`. `application` is the module in which Faust finds it. `variables` are added
    to its environment, besides the settings. It runs in `folder`, by default this process's. `remove_when_orphaned` is
    deleted if this process is killed.
    """

    def __init__(
        self,
        settings: Settings,
        log: Path,
        *,
        application: str = "light_scheduler",
        variables: Mapping[str, str] | None = None,
        folder: Path | None = None,
        remove_when_orphaned: Path | None = None,
    ) -> None:
        self.settings = settings
        self.log = log
        self._command = (
            (sys.executable, "-m", "faust", "-A", application, "worker")
            if settings.processes == 1
            else (sys.executable, "-c", "from light_scheduler.cli import main; main()", "worker")
        )
        self._variables = dict(variables or {})
        self._folder = folder
        self._remove_when_orphaned = remove_when_orphaned
        self._process: Leash | None = None

    @property
    def url(self) -> str:
        return self.settings.web_url

    @property
    def pid(self) -> int | None:
        """The worker's process id, or None before its first start."""
        return self._process.pid if self._process else None

    @property
    def return_code(self) -> int | None:
        """The worker's exit code (minus the signal number if a signal ended it); None while it runs or before its first
        start."""
        return self._process.poll() if self._process else None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the worker."""
        return worker_environment(self.settings) | self._variables

    @property
    def is_running(self) -> bool:
        return self._process is not None and self.return_code is None

    def start(self) -> None:
        """Start or restart the worker."""
        self.settings.data_dir.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = Leash(
                self._command,
                environment=self.environment,
                folder=self._folder,
                output=log,
                when_orphaned=WhenOrphaned(remove=self._remove_when_orphaned),
            )

    def is_ready(self) -> bool:
        """Return whether the worker serves every partition assigned to it."""
        return page_of_worker(self.settings, "/ready", timeout=_ANSWER_SECONDS) is not None

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Wait until the worker serves its partitions.

        Raises SchedulerError, with the last lines of its log, if it ends or is not ready after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not self.is_ready():
            if self.return_code is not None:
                raise SchedulerError(f"the worker ended with exit code {self.return_code}. {self.log_end()}")
            if time.monotonic() > deadline:
                raise SchedulerError(f"the worker is not ready after {timeout:g} s. {self.log_end()}")
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """Kill the worker with SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def ask_to_stop(self) -> None:
        """Send SIGTERM without waiting."""
        self.send_signal(signal.SIGTERM)

    def send_signal(self, signal_number: int) -> None:
        """Send a signal to the worker, such as SIGSTOP or SIGCONT; does nothing if it has ended."""
        if self._process is not None:
            self._process.send_signal(signal_number)

    def wait(self, timeout: float) -> int:
        """Wait until the worker has ended. Return its `return_code`. Raises TimeoutError after `timeout` seconds."""
        if self._process is None:
            raise SchedulerError("the worker was never started")
        return self._process.wait(timeout)

    def stop(self, timeout: float = 20.0) -> None:
        """Stop the worker cleanly. Kill it after `timeout` seconds."""
        if self._process is not None:
            self._process.stop(timeout)

    def log_end(self) -> str:
        """Return the last lines of the worker's log, and its path."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        except OSError:
            lines = []
        return f"{self.log} ends with:\n" + "\n".join(lines)


def worker_environment(settings: Settings, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment that gives a worker exactly these settings, regardless of this process's environment."""
    environment = {
        name: value
        for name, value in (os.environ if base is None else base).items()
        if not name.startswith(ENVIRONMENT_PREFIX)
    }
    for setting in fields(settings):
        text = setting_text(setting, getattr(settings, setting.name))
        environment[ENVIRONMENT_PREFIX + setting.name.upper()] = text
    return environment
