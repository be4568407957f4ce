"""Measures the cost of the data pipeline's jobs by number of rows: time, rate and memory, as one JSON document.

    python -m benchmarks.pipeline --rows 100 --rows 1000000 --result pipeline.json
    python -m benchmarks.pipeline --only loading --rows 1000000 --ingest --result loading.json
    python -m benchmarks.pipeline --only fired --until audit --rows 10000000 --result audit.json

Brokers, topics and tables are temporary; 5 million rows take up to 10 GB of disk at a time. The document is updated
after each job.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from benchmarks.costs import fired, loading, pending, series
from benchmarks.costs.cost import PARTITIONS, PAYLOAD, Cost, Workspace
from light_scheduler.bench.machine import machine, versions
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.pipeline.session import SessionOptions, spark_session

GROUPS = ("loading", "pending", "series", "fired")
SIZES = (100, 10_000, 1_000_000, 5_000_000)

Costs = Callable[[Workspace, int], Iterator[Cost]]


@click.command()
@click.option("--rows", "sizes", type=int, multiple=True, default=SIZES, show_default=True)
@click.option("--only", type=click.Choice(GROUPS), multiple=True, help="Default: all.")
@click.option("--until", metavar="JOB", help="Leave out the jobs of a group after this one.")
@click.option("--ingest", is_flag=True, help="Also let a worker take in what was loaded.")
@click.option("--replay", is_flag=True, help="Also audit with a replay of every schedule.")
@click.option("--memory", default="3g", show_default=True, help="Memory of Spark's driver.")
@click.option("--result", type=click.Path(path_type=Path), required=True, help="The document.")
def main(
    sizes: tuple[int, ...],
    only: tuple[str, ...],
    until: str | None,
    ingest: bool,
    replay: bool,
    memory: str,
    result: Path,
) -> None:
    """Measure the jobs."""
    groups: dict[str, Costs] = {
        "loading": partial(loading.costs, ingest=ingest),
        "pending": pending.costs,
        "series": series.costs,
        "fired": partial(fired.costs, replay=replay),
    }
    settings = {"partitions": PARTITIONS, "payload_bytes": len(PAYLOAD), "memory": memory}
    about = {"settings": settings, "machine": machine(), "versions": versions()}
    costs: list[Cost] = []
    with spark_session("bench", SessionOptions(memory=memory, delta=True)) as spark:
        for rows in sizes:
            for name in only or GROUPS:
                with EmbeddedBroker() as broker, tempfile.TemporaryDirectory() as folder:
                    place = Workspace(spark, broker.bootstrap_servers, Path(folder))
                    for cost in through(groups[name](place, rows), until):
                        print(cost, flush=True)
                        costs.append(cost)
                        document = {**about, "costs": [vars(each) for each in costs]}
                        result.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def through(costs: Iterator[Cost], job: str | None) -> Iterator[Cost]:
    """Yield costs up to that of a job. Each is measured when it is requested."""
    for cost in costs:
        yield cost
        if cost.job == job:
            return


if __name__ == "__main__":
    main()
