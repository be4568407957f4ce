"""What the jobs of the data pipeline cost, by the number of rows: time, rate and memory, as JSON and as a plot.

    python -m benchmarks.pipeline --rows 100 --rows 1000000
    python -m benchmarks.pipeline --only loading --rows 1000000 --ingest

Brokers, topics and tables are temporary; 5 million rows take up to 10 GB of disk at a time. The results of a run take
the place of older ones of the same job and number of rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from benchmarks.costs import fired, loading, pending, series
from benchmarks.costs.cost import Cost, Workspace
from benchmarks.costs.results import draw, kept, merged, write
from light_scheduler.bench.machine import machine
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.pipeline.session import SessionOptions, spark_session

RESULTS = Path(__file__).parent / "results"
GROUPS = ("loading", "pending", "series", "fired")
SIZES = (100, 10_000, 1_000_000, 5_000_000)

Costs = Callable[[Workspace, int], Iterator[Cost]]


@click.command()
@click.option("--rows", "sizes", type=int, multiple=True, default=SIZES, show_default=True)
@click.option("--only", type=click.Choice(GROUPS), multiple=True, help="Default: all.")
@click.option("--ingest", is_flag=True, help="Also let a worker take in what was loaded.")
@click.option("--replay", is_flag=True, help="Also audit with a replay of every schedule.")
@click.option("--memory", default="3g", show_default=True, help="Memory of Spark's driver.")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, help="Folder to write to.")
def main(sizes: tuple[int, ...], only: tuple[str, ...], ingest: bool, replay: bool, memory: str, results: Path) -> None:
    """Measure the jobs and write pipeline.json and pipeline.svg."""
    groups: dict[str, Costs] = {
        "loading": partial(loading.costs, ingest=ingest),
        "pending": pending.costs,
        "series": series.costs,
        "fired": partial(fired.costs, replay=replay),
    }
    document = results / "pipeline.json"
    with spark_session("bench", SessionOptions(memory=memory, delta=True)) as spark:
        for rows in sizes:
            for name in only or GROUPS:
                with EmbeddedBroker() as broker, tempfile.TemporaryDirectory() as folder:
                    for cost in groups[name](Workspace(spark, broker.bootstrap_servers, Path(folder)), rows):
                        print(cost, flush=True)
                        costs = merged(kept(document), [cost])
                        write(document, costs, {"memory": memory, "machine": machine()})
    draw(costs, results / "pipeline.svg")


if __name__ == "__main__":
    main()
