"""Compares schedulers with the same one-shots, one scheduler at a time, in turns. See `benchmarks/contestants`."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Column, Table

from benchmarks.contestants.contestant import Contestant, Workspace
from benchmarks.contestants.figures import UNITS
from benchmarks.contestants.match import PAYLOAD_BYTES, RATE, SECONDS, Match
from benchmarks.contestants.toolbox import Toolbox
from light_scheduler.bench.figures import summarised
from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.stage import Stage
from light_scheduler.bench.table import number_text
from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError

CACHE = Path(tempfile.gettempdir()) / "light-scheduler-peers"
PARTITIONS = 4
WIDTH = 160
"""Width of the table in characters without a terminal."""

# Name on the command line -> its class in `contestants`.
CONTESTANTS = {
    "light": "LightScheduler",
    "light_node": "LightNode",
    "streams": "KafkaStreams",
    "db_scheduler": "DbScheduler",
    "celery": "Celery",
    "apscheduler": "ApScheduler",
}

EXAMPLES = """\b
Examples:
  python -m benchmarks.peers --result peers.json                            all of them, three rounds
  python -m benchmarks.peers light celery --rounds 1 --result peers.json    two of them, once
  python -m benchmarks.peers --scale 0.05 --rounds 1 --result peers.json    does everything work?
"""


class Meeting:
    """All rounds of all contestants, with their figures and versions."""

    def __init__(self, names: tuple[str, ...], place: Workspace, scale: float) -> None:
        self._kinds = {name: contestant_named(name) for name in names}
        self._place = place
        self._scale = scale
        self._found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        self._failures: dict[str, list[str]] = {name: [] for name in names}
        self._versions: dict[str, dict[str, str]] = {}

    @property
    def has_failures(self) -> bool:
        return any(self._failures.values())

    def play(self, number: int, rounds: int) -> None:
        """Play a round: each contestant once. In the first round, each is also killed."""
        for name, kind in self._kinds.items():
            self._place.progress.round = f"{kind.title}, round {number} of {rounds}"
            with tempfile.TemporaryDirectory(prefix=f"light-scheduler-{name}-", ignore_cleanup_errors=True) as folder:
                Path(folder).chmod(0o755)  # PostgreSQL may run as another user
                place = replace(self._place, folder=Path(folder))
                match = Match(kind, place, self._scale)
                try:
                    self._found[name].append(match.play(with_kill=number == 1))
                except SchedulerError as error:
                    self._failures[name].append(f"round {number}: {error}")
                    self._place.progress.note(f"{kind.title}: {error}")
                self._versions[name] = match.versions

    def results(self) -> dict[str, Any]:
        """Return the results of each contestant."""
        return {
            name: {
                "title": kind.title,
                "versions": self._versions[name],
                "settings": dict(kind.settings),
                "pending": int(kind.pending * self._scale),
                "burst": int(kind.burst * self._scale),
                "failures": self._failures[name],
                "figures": {each: msgspec.to_builtins(figure) for each, figure in summarised(found, UNITS).items()},
            }
            for (name, kind), found in zip(self._kinds.items(), self._found.values(), strict=True)
        }


def measured(stage: Stage, progress: Progress, scale: float) -> dict[str, Any]:
    """Play one round with all contestants. Return the results of each."""
    meeting = Meeting(tuple(CONTESTANTS), Workspace(Path(), Toolbox(CACHE.absolute()), stage, progress), scale)
    meeting.play(1, 1)
    return meeting.results()


def contestant_named(name: str) -> type[Contestant]:
    """Return a contestant of CONTESTANTS."""
    kind: type[Contestant] = getattr(import_module(f"benchmarks.contestants.{name}"), CONTESTANTS[name])
    return kind


def table_of(results: dict[str, Any]) -> Table:
    """Show the median of every figure, with a column for each contestant."""
    table = Table(Column("Figure", no_wrap=True), *(found["title"] for found in results.values()), "unit")
    for name in dict.fromkeys(name for found in results.values() for name in found["figures"]):
        cells = [found["figures"].get(name) for found in results.values()]
        unit = next(cell["unit"] for cell in cells if cell)
        table.add_row(name, *(number_text(cell["median"]) if cell else "" for cell in cells), unit)
    return table


@click.command(epilog=EXAMPLES)
@click.argument("names", nargs=-1, type=click.Choice(list(CONTESTANTS)), metavar="[CONTESTANT]...")
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--scale", type=click.FloatRange(0.001, 100), default=1.0, show_default=True, help="Of the usual work.")
@click.option("--cache", type=click.Path(path_type=Path), default=CACHE, help="Where peers are installed.")
@click.option(
    "--result", type=click.Path(path_type=Path), required=True, help="The document, written after each round."
)
def main(names: tuple[str, ...], rounds: int, scale: float, cache: Path, result: Path) -> None:
    """Measure schedulers side by side, each with the same one-shots.

    \b
    Contestants, all by default:
      light         light-scheduler
      light_node    light-scheduler, one node of two processes
      streams       a Kafka Streams punctuator
      db_scheduler  db-scheduler on PostgreSQL
      celery        Celery on Redis
      apscheduler   APScheduler on PostgreSQL

    What the peers need is installed by this command into a cache folder: Python packages, Redis, PostgreSQL, jars. Java
    peers need a JDK 17 or newer on the path. Everything else is temporary. Linux only.

    Exit code 1 if a contestant did not do its part in some round.
    """
    names = names or tuple(CONTESTANTS)
    settings = {"payload_bytes": PAYLOAD_BYTES, "steady": {"rate": RATE, "seconds": SECONDS}}
    about = {"at": SystemClock().now(), "machine": machine(), "versions": versions(), "settings": settings}
    with Progress() as progress, Stage(PARTITIONS) as stage:
        meeting = Meeting(names, Workspace(Path(), Toolbox(cache.absolute()), stage, progress), scale)
        for number in range(1, rounds + 1):
            meeting.play(number, rounds)
            document = {**about, "rounds": number, "contestants": meeting.results()}
            result.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table_of(meeting.results()))
    if meeting.has_failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
