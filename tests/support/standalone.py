"""A Spark cluster of a master and workers, started from the pip package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from light_scheduler.host.ports import free_port

from .jobs import START_TIMEOUT_S, quick_environment
from .waiting import eventually_blocking

HOST = "127.0.0.1"
SMALL = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
    "spark.executor.cores": "1",
    "spark.executor.memory": "600m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
"""Properties of a job that leave room for others."""

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Standalone:
    """A master, and workers of a core each, whose executors have this environment's Python and packages.

    Their working directories and logs are in `folder`; `environment` has variables that say otherwise.
    """

    def __init__(self, folder: Path, workers: int, environment: Mapping[str, str] | None = None) -> None:
        port, self._web_port = free_port(), free_port()
        self.url = f"spark://{HOST}:{port}"
        self._folder = folder
        self._size = workers
        self._environment = {
            **quick_environment(),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(folder / "spark-local"),  # a process that is killed leaves its files
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **(environment or {}),
        }
        self._started = 0
        self._workers: list[subprocess.Popen[bytes]] = []
        self._master = self._start("master.Master", "--port", str(port), "--webui-port", str(self._web_port))

    def complete(self) -> None:
        """Start the workers that are missing, and wait until the master knows all of them and no other."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        while len(self._workers) < self._size:
            place = "--work-dir", str(self._folder / f"work-{self._started}")
            size = "--cores", "1", "--memory", "1g", "--webui-port", "0"
            self._workers.append(self._start("worker.Worker", *size, *place, self.url))
        eventually_blocking(
            lambda: self._alive() == self._size, within=START_TIMEOUT_S, every=0.1, what=f"all workers of {self.url}"
        )

    def stop_executor(self, number: str) -> None:
        """Stop an executor (SIGSTOP), by its number in its application, the only one that runs."""
        _, executor = self._executor(number)
        executor.suspend()

    def resume_executor(self, number: str) -> None:
        """Let an executor that was stopped go on."""
        _, executor = self._executor(number)
        executor.resume()

    def kill_executor(self, number: str) -> None:
        """Kill an executor (SIGKILL)."""
        _, executor = self._executor(number)
        executor.kill()

    def kill_worker(self, number: str) -> None:
        """Kill the worker that has this executor, which is stopped; it goes on, and ends itself."""
        worker, executor = self._executor(number)
        worker.kill()
        worker.wait()
        executor.resume()

    def close(self) -> None:
        """End all processes, and wait until they have."""
        processes = [*self._workers, self._master]
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()

    def _executor(self, number: str) -> tuple[subprocess.Popen[bytes], psutil.Process]:
        for worker in self._workers:
            for process in psutil.Process(worker.pid).children():
                words = _words(process)
                if _EXECUTOR in words and words[words.index("--executor-id") + 1] == number:
                    return worker, process
        raise AssertionError(f"no worker has an executor {number}")

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        self._started += 1
        command = [str(_SPARK_CLASS), f"org.apache.spark.deploy.{name}", "--host", HOST, *arguments]
        with (self._folder / f"{name}-{self._started}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=self._environment, cwd=self._folder)

    def _alive(self) -> int:
        """Return how many workers the master has."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._web_port}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):  # before it has all of its pages, it answers with its first one
            return 0


def _words(process: psutil.Process) -> list[str]:
    """Return the command line of a process, nothing if it has ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # psutil.ZombieProcess is one
        return []


@contextmanager
def standalone(folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None) -> Iterator[Standalone]:
    """Run a cluster; it is complete when the block begins."""
    with ExitStack() as stack:
        cluster = Standalone(folder, workers, environment)
        stack.callback(cluster.close)
        cluster.complete()
        yield cluster
