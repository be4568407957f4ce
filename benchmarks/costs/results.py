"""What was measured, kept as a document and drawn."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .cost import PARTITIONS, PAYLOAD, WORKER, Cost


def kept(path: Path) -> list[Cost]:
    """Return the costs that a document has; none if there is no document."""
    if not path.exists():
        return []
    return [Cost(**cost) for cost in json.loads(path.read_text(encoding="utf-8"))["costs"]]


def merged(old: Iterable[Cost], new: Iterable[Cost]) -> list[Cost]:
    """Put new costs in the place of those of the same job and number of rows."""
    by_run = {(cost.job, cost.rows): cost for cost in (*old, *new)}
    return [by_run[run] for run in sorted(by_run)]


def write(path: Path, costs: Iterable[Cost], about: dict[str, Any]) -> None:
    """Write a document."""
    settings = {"partitions": PARTITIONS, "payload_bytes": len(PAYLOAD), **about}
    document = {"settings": settings, "costs": [vars(cost) for cost in costs]}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def draw(costs: list[Cost], path: Path) -> None:
    """Draw seconds, processor seconds and memory over rows, with a line of linear cost beside the first two."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    costs = [cost for cost in costs if cost.job != WORKER]
    figure, (times, processor, memory) = plt.subplots(1, 3, figsize=(13, 4.5))
    for job in dict.fromkeys(cost.job for cost in costs):
        runs = [cost for cost in costs if cost.job == job]
        sizes = [run.rows for run in runs]
        times.plot(sizes, [run.seconds for run in runs], marker="o", label=job)
        known = [(run.rows, run.cpu_s) for run in runs if run.cpu_s is not None]
        processor.plot(*zip(*known, strict=True), marker="o", label=job)
        memory.plot(sizes, [run.peak_rss_bytes / 1e9 for run in runs], marker="o", label=job)
    for axes, values in (
        (times, [(cost.rows, cost.seconds) for cost in costs]),
        (processor, [(cost.rows, cost.cpu_s) for cost in costs if cost.cpu_s is not None]),
    ):
        rows, most = max(values)
        axes.plot([rows / 100, rows], [most / 100, most], "k:", linewidth=1, label="linear")
        axes.set(xscale="log", yscale="log", xlabel="rows")
    times.set(title="Seconds")
    processor.set(title="Processor seconds of Spark")
    memory.set(title="Most memory of Spark, GB", xscale="log", xlabel="rows", ylim=(0, None))
    for axes in (times, processor, memory):
        axes.grid(alpha=0.3)
    times.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
