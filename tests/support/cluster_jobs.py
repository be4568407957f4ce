"""Jobs of the pipeline as commands on a Spark cluster, killed while their tasks run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from light_scheduler.host.ports import free_port

from .jobs import START_TIMEOUT_S, quick_environment
from .standalone import HOST, SMALL, Standalone
from .waiting import eventually_blocking

_LOST = "Lost executor"
"""Spark's driver says so of an executor that was lost while it wanted it."""


class Kill(StrEnum):
    """What a SIGKILL goes to: an executor with a task, the worker that such an executor is of, or the whole driver."""

    EXECUTOR = "executor"
    WORKER = "worker"
    DRIVER = "driver"


class Ran(NamedTuple):
    """How a job has ended, and its summary."""

    exit_code: int
    summary: dict[str, Any]


class ClusterJob:
    """`light-scheduler pipeline ...` on a cluster, in a folder of its own, and in a session of its own, so that a kill
    takes all processes of the driver.
    """

    def __init__(self, cluster: Standalone, folder: Path, words: Sequence[str]) -> None:
        self._cluster = cluster
        self._folder = folder
        self._ui_port = free_port()
        configs = {
            **SMALL,
            "spark.ui.enabled": "true",
            "spark.ui.port": str(self._ui_port),
            "spark.ui.liveUpdate.period": "0",  # tasks are over in less than it takes otherwise
            "spark.local.dir": str(folder / "spark-local"),
        }
        self._command = [
            *(sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", *words),
            *("--master", cluster.url, "--memory", "700m", "--json"),
            *(word for item in configs.items() for word in ("--spark-conf", "=".join(item))),
        ]

    def run(self) -> Ran:
        """Run the job to its end."""
        return self._ended(self._start())

    def killed(self, kill: Kill, after: int) -> Ran | None:
        """Run the job; kill as soon as `after` tasks are done and another one runs. Returns how the job has ended
        then, None if it was killed itself.
        """
        process = self._start()
        try:
            at_work = self._at_work if kill is Kill.DRIVER else self._stopped_at_work
            executor = eventually_blocking(
                lambda: at_work(process, after), within=START_TIMEOUT_S, what=f"a task after {after}"
            )
            match kill:
                case Kill.EXECUTOR:
                    self._cluster.kill_executor(executor)
                case Kill.WORKER:
                    self._cluster.kill_worker(executor)
                case Kill.DRIVER:
                    return None
            ran = self._ended(process)
            assert _LOST in self._all_said(), "the job was over before it missed what was killed"
            return ran
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self._folder.mkdir(exist_ok=True)
        with (self._folder / "out").open("wb") as out, (self._folder / "err").open("wb") as err:
            return subprocess.Popen(
                self._command,
                stdout=out,
                stderr=err,
                cwd=self._folder,
                env={
                    **quick_environment(),
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": HOST,
                },
                start_new_session=True,
            )

    def _ended(self, process: subprocess.Popen[bytes]) -> Ran:
        exit_code = process.wait()
        said = (self._folder / "out").read_bytes()
        assert said, self._said()
        return Ran(exit_code, json.loads(said))

    def _at_work(self, process: subprocess.Popen[bytes], after: int) -> str | None:
        """Return the number of an executor with a task, None if there is none or `after` tasks are not done yet."""
        assert process.poll() is None, f"it has ended before: {self._said()}"
        executors = self._executors()
        if sum(each["completedTasks"] for each in executors) < after:
            return None
        return next((each["id"] for each in executors if each["activeTasks"] and each["id"] != "driver"), None)

    def _stopped_at_work(self, process: subprocess.Popen[bytes], after: int) -> str | None:
        """Return the same, and stop the executor, so that its task is not over before it is killed."""
        executor = self._at_work(process, after)
        if executor is None:
            return None
        self._cluster.stop_executor(executor)
        if any(each["id"] == executor and each["activeTasks"] for each in self._executors()):
            return executor
        self._cluster.resume_executor(executor)
        return None

    def _executors(self) -> list[dict[str, Any]]:
        """Return what the driver's REST API tells of the executors; nothing while it does not answer."""
        try:
            applications = self._asked("")
            return self._asked(f"/{applications[0]['id']}/executors") if applications else []
        except (OSError, ValueError):
            return []

    def _asked(self, path: str) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"http://{HOST}:{self._ui_port}/api/v1/applications{path}", timeout=5) as answer:
            return list(json.load(answer))

    def _said(self) -> str:
        return self._all_said()[-6_000:]

    def _all_said(self) -> str:
        return (self._folder / "err").read_text(errors="replace")
