"""Jobs on Spark in a process of their own, with everything that they show while they run.

Run as a program (`python -m support.watched_jobs`), it carries out several commands of `light-scheduler pipeline` one
after another in one Spark session, as lines of JSON on standard input say (`Command`): they have secrets in them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from light_scheduler.host.ports import free_port
from light_scheduler.settings import ENVIRONMENT_PREFIX

from .jobs import quick_environment
from .written import command_lines, files_of

LOOK_S = 0.5
PAGES_S = 3.0
"""How often pages are looked at: what has ended stays on them."""
PAGES = ("environment/", "executors/", "jobs/", "stages/", "SQL/", "api/v1/applications")
OF_APPLICATION = ("environment", "sql?details=true&planDescription=true&length=1000", "allexecutors")
"""What Spark's own pages tell of an application; of queries, the first 20 unless more are asked for."""

TESTS = Path(__file__).parents[1]
ENDED = "ended with"
"""Stands before the exit code of each command in what the program prints."""


class Command(NamedTuple):
    """Words after `pipeline`, and settings as text; a job without end is stopped as soon as `until` is there.

    With `timeout_s` the job waits no longer than that for a broker that lets nobody in.
    """

    words: Sequence[str]
    settings: Mapping[str, str]
    until: str | None = None
    timeout_s: float | None = None


class Watched:
    """A process, and what it shows while it runs, by where it was seen. Its files and its output are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.parts: dict[str, bytes] = {}
        self._seen = defaultdict[str, list[bytes]](list)
        self.output = folder / "output"
        self._ui = f"http://127.0.0.1:{free_port()}/"
        self._folder = folder
        (folder / "events").mkdir()

    @property
    def spark_options(self) -> list[str]:
        """Options of a job that shows all that it can."""
        confs = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (self._folder / "events").as_uri(),
            "spark.ui.enabled": "true",
            "spark.ui.port": self._ui.rpartition(":")[2].strip("/"),
            "spark.log.level": "INFO",
        }
        words = ["--master", "local[2]", "--memory", "1g"]
        for name, value in confs.items():
            words += ["--spark-conf", f"{name}={value}"]
        return words

    def run_one(self, command: Command) -> int:
        """Run a command as users do; return its exit code."""
        program = [sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", *command.words]
        return self._run(program, environment_of(command.settings))

    def run_all(self, commands: Sequence[Command]) -> list[int]:
        """Run commands in one session; return their exit codes."""
        environment = environment_of({})
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTS), environment.get("PYTHONPATH"))))
        told = "".join(f"{json.dumps(command)}\n" for command in commands)
        assert self._run([sys.executable, "-m", "support.watched_jobs"], environment, told.encode()) == 0, self.end()
        lines = self.output.read_text(errors="replace").splitlines()
        return [int(line.removeprefix(ENDED)) for line in lines if line.startswith(ENDED)]

    def end(self) -> str:
        """Return the end of what was printed."""
        return self.output.read_text(errors="replace")[-4_000:]

    def _run(self, program: list[str], environment: dict[str, str], told: bytes = b"") -> int:
        """Run a program to its end, looking at its pages and its command lines all the time."""
        pages_at = time.monotonic()
        with self.output.open("wb") as output:
            process = subprocess.Popen(
                program, env=environment, cwd=self._folder, stdin=subprocess.PIPE, stdout=output, stderr=output
            )
            assert process.stdin is not None
            try:
                with process.stdin:
                    process.stdin.write(told)
                while not self._has_ended(process):
                    self._seen["ps"].append(command_lines())
                    if time.monotonic() >= pages_at:
                        self._look_at_pages()
                        pages_at = time.monotonic() + PAGES_S
            finally:
                process.kill()
        self.parts |= {place: b"".join(seen) for place, seen in self._seen.items()} | files_of(self._folder)
        return process.returncode

    def _has_ended(self, process: subprocess.Popen[bytes]) -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
        return process.returncode is not None

    def _look_at_pages(self) -> None:
        for page in PAGES:
            self._seen[page].append(self._page(page))
        with suppress(ValueError):
            for each in json.loads(self._page("api/v1/applications")):
                for page in OF_APPLICATION:
                    self._seen[page].append(self._page(f"api/v1/applications/{each['id']}/{page}"))

    def _page(self, path: str) -> bytes:
        with suppress(OSError, HTTPException), urllib.request.urlopen(self._ui + path, timeout=10) as response:
            return bytes(response.read())
        return b""


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process with settings."""
    own = {name: value for name, value in quick_environment().items() if not name.startswith(ENVIRONMENT_PREFIX)}
    return own | {ENVIRONMENT_PREFIX + name.upper(): value for name, value in settings.items()}


@contextmanager
def one_session() -> Iterator[None]:
    """Have all commands use the session that the first of them starts."""
    from light_scheduler.pipeline import session

    found: list[Any] = []
    start = session.spark_session
    with ExitStack() as stack:

        @contextmanager
        def the_one(name: str, options: session.SessionOptions) -> Iterator[Any]:
            if not found:
                found.append(stack.enter_context(start(name, replace(options, delta=True))))
            yield found[0]

        session.spark_session = the_one
        yield


def carry_out(command: Command) -> int | str | None:
    """Run a command; return its exit code. What it raises is printed with all that led to it."""
    from light_scheduler.cli import cli
    from light_scheduler.pipeline import topics
    from light_scheduler.pipeline.kafka.log_ends import TIMEOUT_S

    vars(topics)["TIMEOUT_S"] = command.timeout_s or TIMEOUT_S
    environment = environment_of(command.settings)
    os.environ.clear()
    os.environ.update(environment)
    if command.until is not None:
        threading.Thread(target=stop_when_there, args=(Path(command.until),), daemon=True).start()
    try:
        cli(["pipeline", *command.words], standalone_mode=False)
    except SystemExit as exit:
        return exit.code
    except Exception:  # noqa: BLE001 - it is what the command ends with
        traceback.print_exc()
        return 1
    return 0


def stop_when_there(path: Path) -> None:
    """Stop this process as a user does, when there is something at a path."""
    while not path.exists():
        threading.Event().wait(LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    with one_session():
        for line in sys.stdin:
            sys.stdout.write(f"\n{ENDED} {carry_out(Command(*json.loads(line))) or 0}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
