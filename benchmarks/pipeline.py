"""What the jobs of the data pipeline cost, by the number of rows: time, rate and memory, as JSON and as a plot.

    python benchmarks/pipeline.py --rows 100 --rows 1000000

For each number of rows: a Parquet table of one-shots with 200 bytes of payload is loaded; a table of schedules is
imported into an application of its own, and exported from there. Broker, topics and tables are temporary; 5 million
rows take some 6 GB of disk.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from pyspark.sql import SparkSession

from light_scheduler.bench.machine import machine
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.engine.plain import plain_entry
from light_scheduler.pipeline import export, load, restore
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.schedule_table import COLUMNS, IN_PYTHON, rows_of
from light_scheduler.pipeline.session import SessionOptions, spark_session
from light_scheduler.settings import Settings
from light_scheduler.wire import UnsentRecord, partition_for
from light_scheduler.worker.topic_admin import create_topic, create_topics

RESULTS = Path(__file__).parent / "results"
TARGET = "reminders"
PARTITIONS = 4
AT = 1_900_000_000_000
PAYLOAD = b"x" * 200
LOOK_EVERY_S = 0.5
SIZES = (100, 10_000, 1_000_000, 5_000_000)


@dataclass(frozen=True)
class Cost:
    """What one run of a job took; memory is the most that Spark and its Python workers had at once."""

    job: str
    rows: int
    seconds: float
    rows_per_s: float
    peak_rss_bytes: int


class Bench:
    """Runs the jobs one after the other in one session; the first, small run of each is what a cold start costs."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def costs(self, bootstrap_servers: str, rows: int) -> Iterator[Cost]:
        """Yield what each job costs, with topics of their own in an empty broker."""
        settings = Settings(broker=f"kafka://{bootstrap_servers}", partitions=PARTITIONS)
        create_topics(settings)
        create_topic(bootstrap_servers, TARGET, PARTITIONS)
        cluster = Cluster(bootstrap_servers)
        commands, restored = settings.topics.commands, str(self._folder / "restored")
        table, schedules = str(self._folder / "table"), str(self._folder / "schedules")
        self._write_commands(table, rows)
        loading = load.LoadOptions(table=table, cluster=cluster, commands_topic=commands, name=str(rows))
        yield self._cost("load", rows, lambda: load.main(self._spark, loading).sent)
        self._write_schedules(schedules, rows, commands)
        inputs: dict[str, Any] = {"cluster": cluster, "app_id": settings.app_id, "commands_topics": (commands,)}
        restoring = restore.RestoreOptions(table=schedules, **inputs)
        yield self._cost("import", rows, lambda: restore.main(self._spark, restoring).written)
        exporting = export.ExportOptions(table=restored, **inputs)
        yield self._cost("export", rows, lambda: export.main(self._spark, exporting).schedules)
        for path in (table, schedules, restored):
            shutil.rmtree(path)

    def _cost(self, job: str, rows: int, run: Callable[[], int]) -> Cost:
        with watched_memory() as peak:
            begun = time.monotonic()
            done = run()
            seconds = time.monotonic() - begun
        assert done == rows, f"{job} did {done} of {rows} rows"
        return Cost(job, rows, round(seconds, 3), round(rows / seconds), peak[0])

    def _write_commands(self, path: str, rows: int) -> None:
        table = self._spark.range(0, rows, 1, 4).selectExpr(
            "format_string('order-%010d', id) as id",
            f"{AT} + id as at",
            f"'{TARGET}' as target_topic",
            f"'{PAYLOAD.decode()}' as payload",
        )
        table.write.parquet(path)

    def _write_schedules(self, path: str, rows: int, commands: str) -> None:
        def pending(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                entries, places = [], []
                for number in batch.column("id").to_pylist():
                    key = b"order-%010d" % number
                    places.append(partition_for(key, PARTITIONS))
                    headers = [("schedule-at", b"%d" % (AT + number)), ("schedule-target-topic", TARGET.encode())]
                    record = UnsentRecord(key, PAYLOAD, headers, AT, places[-1], number)
                    plain = plain_entry(record, AT, NO_LIMITS)
                    assert plain is not None, "it is as plain as can be"
                    entries.append(plain[1])
                yield rows_of(entries, commands, pa.array(places), PARTITIONS)

        for name, value in IN_PYTHON.items():
            self._spark.conf.set(name, value)
        self._spark.range(0, rows, 1, 4).mapInArrow(pending, COLUMNS).write.parquet(path)


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """Look at the memory of this process' children, the broker aside, within a block: yields a list of the peak."""
    peak, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_EVERY_S):
            peak[0] = max(peak[0], sum(resident(child) for child in spark_processes()))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def spark_processes() -> Iterator[int]:
    """Yield Spark's JVM, which is a child of this process, and all that it started."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    mine = {pid for pid, parent in parents.items() if parent == os.getpid() and is_spark(pid)}
    while mine:
        yield from mine
        mine = {pid for pid, parent in parents.items() if parent in mine}


def is_spark(pid: int) -> bool:
    try:
        return b"org.apache.spark" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def plot(costs: list[Cost], path: Path) -> None:
    """Draw seconds over rows, both logarithmic, with a line of linear cost beside them."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for job in dict.fromkeys(cost.job for cost in costs):
        runs = [cost for cost in costs if cost.job == job]
        axes.plot([run.rows for run in runs], [run.seconds for run in runs], marker="o", label=job)
    last = max(costs, key=lambda cost: (cost.rows, cost.seconds))
    sizes = [min(cost.rows for cost in costs), last.rows]
    axes.plot(sizes, [last.seconds * size / last.rows for size in sizes], "k:", linewidth=1, label="linear")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds", title="Cost of the pipeline's jobs")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


@click.command()
@click.option("--rows", "sizes", type=int, multiple=True, default=SIZES, show_default=True)
@click.option("--memory", default="3g", show_default=True, help="Memory of Spark's driver.")
def main(sizes: tuple[int, ...], memory: str) -> None:
    """Measure the jobs and write results/pipeline.json and results/pipeline.svg."""
    options = SessionOptions(memory=memory)
    about = {"at": SystemClock().now(), "machine": machine()}
    costs = []
    with tempfile.TemporaryDirectory() as folder, spark_session("bench", options) as spark:
        bench = Bench(spark, Path(folder))
        for rows in sizes:
            with EmbeddedBroker() as broker:
                for cost in bench.costs(broker.bootstrap_servers, rows):
                    print(cost, flush=True)
                    costs.append(cost)
    document = {
        **about,
        "settings": {"partitions": PARTITIONS, "payload_bytes": len(PAYLOAD), "memory": memory},
        "costs": [vars(cost) for cost in costs],
    }
    (RESULTS / "pipeline.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    plot(costs, RESULTS / "pipeline.svg")


if __name__ == "__main__":
    main()
