"""An application with the names of the documents on a broker of its own, so that examples run as they stand."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.settings import ENVIRONMENT_PREFIX

from .application import Application

ROOT = Path(__file__).parents[2]
TARGETS = ("reminders", "invoices")
"""Topics that documents deliver to without creating them."""


@dataclass(frozen=True)
class Home:
    """What `light-scheduler up` starts; `environment` is where programs find it."""

    application: Application
    environment: Mapping[str, str] = field(repr=False)

    def run(self, command: str, **variables: str) -> str:
        """Return what a command prints, run in bash at the root of the project. It has to succeed."""
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    @contextmanager
    def running(self, command: str, log: Path, **variables: str) -> Iterator[None]:
        """Run a program meanwhile, with its output in a file."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=ROOT,
                env={**self.environment, **variables},
                stdout=output,
                stderr=output,
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(120)

    def walk_through(self, program: Path, folder: Path) -> int:
        """Run the commands of a program's docstring, compare what they print with what it shows; count those shown.

        What runs is an unhurried copy in a folder.
        """
        copy = unhurried(program, folder)
        shown_ones = 0
        for command, shown in steps(program):
            printed = self.run(command.replace(str(program.relative_to(ROOT)), str(copy)))
            assert not shown or printed == shown, command
            shown_ones += bool(shown)
        return shown_ones

    async def events_of(self, id: str) -> list[str]:
        """Return what the history tells of a schedule."""
        return [event.event for event in await self.application.history() if event.id == id]


def unhurried(program: Path, folder: Path) -> Path:
    """Copy a program to a folder, with delays that are longer than a process may stand still in place of short ones."""
    copy = folder / program.name
    copy.write_text(program.read_text(encoding="utf-8").replace('"2s"', '"8s"'), encoding="utf-8")
    return copy


def steps(program: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands in the docstring of a program, those behind `$ `, each with the output shown below it."""
    text = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or ""
    for step in ("\n" + text).split("\n$ ")[1:]:
        command, _, shown = step.partition("\n")
        yield command, shown + "\n" if shown else ""


@contextmanager
def at_home(folder: Path, **options: str) -> Iterator[Home]:
    """Run a broker and a worker with the default names. `options` are settings of the worker."""
    with EmbeddedBroker() as broker:
        application = asyncio.run(_started(broker.bootstrap_servers, folder, options))
        worker = application.workers[0].url
        environment = {
            **os.environ,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "KAFKA": broker.bootstrap_servers,
            "SCHEDULER": worker,
            f"{ENVIRONMENT_PREFIX}BROKER": f"kafka://{broker.bootstrap_servers}",
            f"{ENVIRONMENT_PREFIX}WEB_PORT": worker.rpartition(":")[2],
        }
        try:
            yield Home(application, environment)
        finally:
            application.close()


async def _started(bootstrap_servers: str, folder: Path, options: Mapping[str, str]) -> Application:
    application = await Application.create(bootstrap_servers, folder, app_id="light-scheduler", **options)
    for topic in TARGETS:
        await application.create_topic(topic)
    await application.start_worker()
    return application
