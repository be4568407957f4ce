"""An application for all jobs of the pipeline, and what each of them makes of it, so that two runs can be compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka

from .kafka_records import committed_records, decided_records
from .ledger import Ledger

MINUTE, HOUR = 60_000, 3_600_000
FILES, ROWS = 4, 1_000
_STATE = ("watermarks", "open", "faults", "evidence")
"""Folders of the state of audits."""


@dataclass(frozen=True)
class Place:
    """Where a run of a job reads and writes: `shared` is for all runs, `own` and the application `app_id` for this one.

    The ledger's application has fired for two hours, one firing was altered, and schedules are pending.
    """

    kafka: Kafka
    ledger: Ledger
    end: int
    shared: Path
    own: Path
    app_id: str

    @property
    def settings(self) -> Settings:
        """The settings of the run's own application."""
        broker = f"kafka://{self.kafka.bootstrap_servers}"
        return Settings(app_id=self.app_id, broker=broker, partitions=self.ledger.partitions)

    def of_ledger(self) -> list[str]:
        return ["--app-id", self.ledger.names.app_id, "--broker", f"kafka://{self.kafka.bootstrap_servers}"]

    def of_own(self) -> list[str]:
        return ["--app-id", self.app_id, "--broker", f"kafka://{self.kafka.bootstrap_servers}"]


def application(app_id: str, end: int) -> Ledger:
    """Return topics of two hours up to an instant, with schedules that are pending."""
    begin = end - 2 * HOUR
    ledger = Ledger(app_id)
    for number in range(400):
        ledger.send(f"s-{number}", begin + number, ("at", begin + (1 + number % 110) * MINUTE + number))
        ledger.send(
            f"ahead-{number}", begin + number, ("at", end + (5 + number % 10) * HOUR + number), ("labels", "a=b")
        )
    ledger.send("rate", begin, ("every", "10m"), ("max-firings", 5))
    ledger.send("ahead-rate", begin, ("every", "10m"), ("start", end + 5 * HOUR), ("max-firings", 20))
    ledger.run_until(end)
    firing = ledger.of(ledger.target)[7]
    ledger.change(firing, replace(firing, value=b"other"))
    return ledger


def last_hour() -> int:
    """Return when the last hour ended but one (UTC epoch ms): all that fired is over, and all that is ahead is not."""
    return (SystemClock().now() // HOUR - 1) * HOUR


def write_rows(folder: Path) -> None:
    """Write a table for a load, with a row in each file that is refused."""
    folder.mkdir()
    for file in range(FILES):
        ids = [f"{file}-{number}" for number in range(ROWS)]
        at = ["soon" if number == ROWS // 2 else str(4_000_000_000_000 + number) for number in range(ROWS)]
        table = {"id": ids, "at": at, "target_topic": ["t"] * ROWS, "payload": ids}
        pq.write_table(pa.table(table), folder / f"{file}.parquet")


@dataclass(frozen=True)
class Case:
    """A job. `words` is its command line, `data` what it has written; `prepare` makes what it needs.

    `own` names the fields of its summary that each run has its own of, and `counted` those that a run which continues
    another one has its own of. `after` so many tasks it is at work.
    """

    words: Callable[[Place], list[str]]
    data: Callable[[SparkSession, Place], Any]
    after: int
    prepare: Callable[[Place], None] = lambda _: None
    own: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()

    def told(self, summary: dict[str, Any], *, continues: bool) -> dict[str, Any]:
        """Return what of a summary is the same in all runs."""
        left_out = self.own | (self.counted if continues else frozenset())
        return {name: value for name, value in summary.items() if name not in left_out}


def rows(table: DataFrame, *columns: str) -> list[str]:
    """Return the rows of a table in an order of their own."""
    return sorted(repr(row.asDict(recursive=True)) for row in table.select(*columns or ["*"]).collect())


def _parquet(name: str, *columns: str) -> Callable[[SparkSession, Place], Any]:
    return lambda spark, place: rows(spark.read.parquet(str(place.own / name)), *columns)


def _all_of(*parts: Callable[[SparkSession, Place], Any]) -> Callable[[SparkSession, Place], Any]:
    return lambda spark, place: [part(spark, place) for part in parts]


def _page(_: SparkSession, place: Place) -> bytes:
    return (place.own / "report.html").read_bytes()


def _loaded(_: SparkSession, place: Place) -> Any:
    found = decided_records(place.kafka, place.settings.topics.commands)
    return sorted((each.partition, each.key, each.value, each.headers) for each in found)


def _imported(_: SparkSession, place: Place) -> Any:
    """Return the state: a task that is run again writes its records again."""
    changelog = place.settings.topics.changelog(place.settings.topics.commands)
    return {(each.partition, each.key): each.value for each in committed_records(place.kafka, changelog)}


def _archived(spark: SparkSession, place: Place) -> Any:
    return rows(spark.read.format("delta").load(str(place.own / "archive")))


def _state(spark: SparkSession, place: Place) -> Any:
    tables = {name: spark.read.parquet(str(place.own / "audits" / name)) for name in _STATE}
    marks = [json.loads(row.watermark) for row in tables["watermarks"].orderBy("run").collect()]
    return [marks, *(rows(tables[name]) for name in _STATE[1:])]


def _own_topics(place: Place) -> None:
    create_topics(place.settings)


def _first_audit(place: Place) -> None:
    shutil.copytree(place.shared / "audits", place.own / "audits")


def _audit(place: Place, *more: str) -> list[str]:
    report = "--report", str(place.own / "report.html"), "--faults", str(place.own / "faults")
    return ["audit", "--to", str(place.end), *report, *more, *place.of_ledger()]


def first_audit(place: Place) -> list[str]:
    """Return the command of the audit that `audit --since-last` continues."""
    to = str(place.end - HOUR)
    return ["audit", "--to", to, "--since-last", str(place.shared / "audits"), *place.of_ledger()]


def export(place: Place) -> list[str]:
    """Return the command that exports the ledger's application for all runs."""
    return ["export", str(place.shared / "schedules"), *place.of_ledger()]


def _words(*begin: str, own: Sequence[str] = ()) -> Callable[[Place], list[str]]:
    """Return a command of the ledger's application, with options that name places of the run."""
    return lambda place: [*begin, *(word.format(own=place.own) for word in own), *place.of_ledger()]


CASES = {
    "load": Case(
        lambda place: ["load", str(place.shared / "rows"), "--refused", str(place.own / "refused"), *place.of_own()],
        _all_of(_loaded, _parquet("refused")),
        after=2,
        prepare=_own_topics,
        own=frozenset({"refused_table"}),
        counted=frozenset({"sent", "sent_before"}),
    ),
    "import": Case(
        lambda place: ["import", str(place.shared / "schedules"), *place.of_own()],
        _imported,
        after=12,
        prepare=_own_topics,
        counted=frozenset({"written", "bytes"}),
    ),
    "export": Case(_words("export", own=["{own}/schedules"]), _parquet("schedules"), after=2, own=frozenset({"table"})),
    "archive": Case(
        _words("archive", "--batch", "1000", own=["{own}/archive"]),
        _archived,
        after=12,
        own=frozenset({"path", "files", "bytes", "added_bytes"}),
        counted=frozenset({"records", "batches"}),
    ),
    "audit": Case(_audit, _all_of(_parquet("faults"), _page), after=8),
    "audit --since-last": Case(
        lambda place: _audit(place, "--since-last", str(place.own / "audits")),
        _all_of(_state, _parquet("faults"), _page),
        after=20,
        prepare=_first_audit,
    ),
    "report": Case(_words("report", own=["--report", "{own}/report.html"]), _page, after=2),
    "forecast": Case(
        _words("forecast", "--ahead", "1d", own=["--table", "{own}/load"]),
        _parquet("load"),
        after=2,
        own=frozenset({"start", "end"}),
    ),
}
