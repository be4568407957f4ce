"""Plots the results in benchmarks/results: rates with their ceilings, lateness, compared schedulers, jobs on Spark.

    python benchmarks/plots.py

Each plot uses the available results; a plot without any is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RESULTS = Path(__file__).parent / "results"
RATES = {
    "ingest": "accepted_per_s",
    "burst": "firings_per_s",
    "burst-million": "firings_per_s",
    "scan-cost-10m": "firings_per_s",
    "recovery-10m": "recovered_per_s",
}
"""Result -> its rate."""

LATENESS = ("steady", "steady-grid", "steady-grid-unstaged", "steady-10m", "fair", "recurring")
PERCENTILES = {"p50": "lateness_p50_ms", "p99": "lateness_p99_ms", "max": "lateness_max_ms"}
COMPARED = {
    "accepted_per_s": "accepted, 1/s",
    "burst_per_s": "fired in a burst, 1/s",
    "lateness_p99_ms": "lateness, 99 %, ms",
    "scheduler_bytes_per_pending": "memory of a pending one, bytes",
}
"""Figures of every contestant, one panel each."""

Figures = Mapping[str, Mapping[str, Any]]


def figures_of(name: str) -> Figures | None:
    """Return the figures of a result, if it exists."""
    path = RESULTS / f"{name}.json"
    found: Figures | None = json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else None
    return found


def rates() -> Figure | None:
    """Plot the median rates, with minimum and maximum, and the ceilings of the same runs."""
    found = {name: figures for name in RATES if (figures := figures_of(name))}
    if not found:
        return None
    figure, axes = plt.subplots(figsize=(7, 4))
    for place, (name, figures) in enumerate(found.items()):
        rate, ceiling = figures[RATES[name]], figures.get("ceiling_per_s")
        median = rate["median"]
        axes.bar(place, median, color="C0", yerr=[[median - rate["min"]], [rate["max"] - median]], capsize=4)
        axes.annotate(f"{median:,.0f}", (place, median), (0, 8), textcoords="offset points", ha="center", fontsize=8)
        if ceiling is not None:
            axes.plot(place, ceiling["median"], "k_", markersize=24)
    axes.set_xticks(range(len(found)), list(found))
    axes.set(yscale="log", ylabel="events a second", title="Rates (bars) and what they are measured against (lines)")
    axes.grid(axis="y", alpha=0.3)
    return figure


def lateness() -> Figure | None:
    """Plot the lateness of firings as their consumer sees it."""
    found = {name: figures for name in LATENESS if (figures := figures_of(name))}
    if not found:
        return None
    figure, axes = plt.subplots(figsize=(7, 4))
    _bars(
        axes, {name: {p: figures[key]["median"] for p, key in PERCENTILES.items()} for name, figures in found.items()}
    )
    axes.set(yscale="log", ylabel="ms after due", title="Lateness that a read_committed consumer sees")
    axes.legend()
    return figure


def _bars(axes: Axes, values: Mapping[str, Mapping[str, float]]) -> None:
    width = 0.8 / len(PERCENTILES)
    for number, percentile in enumerate(PERCENTILES):
        places = [place + (number - 1) * width for place in range(len(values))]
        axes.bar(places, [each[percentile] for each in values.values()], width, label=percentile)
    axes.set_xticks(range(len(values)), list(values), rotation=15)
    axes.grid(axis="y", alpha=0.3)


def peers() -> Figure | None:
    """Plot the comparison of schedulers, with a panel for each figure."""
    path = RESULTS / "peers.json"
    if not path.exists():
        return None
    contestants = json.loads(path.read_text(encoding="utf-8"))["contestants"]
    figure, panels = plt.subplots(2, 2, figsize=(9, 6))
    for axes, (key, title) in zip(panels.flat, COMPARED.items(), strict=True):
        medians = {name: each["figures"][key]["median"] for name, each in contestants.items() if key in each["figures"]}
        axes.barh(list(medians), list(medians.values()), color=["C1" if name == "light" else "C0" for name in medians])
        axes.invert_yaxis()
        axes.set(xscale="log", title=title)
        axes.grid(axis="x", alpha=0.3)
    return figure


def pipeline() -> Figure | None:
    """Plot seconds, processor seconds and memory over rows, with a line of linear cost for the first two."""
    path = RESULTS / "pipeline.json"
    if not path.exists():
        return None
    costs = [cost for cost in json.loads(path.read_text(encoding="utf-8"))["costs"] if cost["job"] != "worker"]
    figure, (times, processor, memory) = plt.subplots(1, 3, figsize=(13, 4.5))
    for job in dict.fromkeys(cost["job"] for cost in costs):
        runs = sorted((cost for cost in costs if cost["job"] == job), key=lambda cost: cost["rows"])
        sizes = [run["rows"] for run in runs]
        times.plot(sizes, [run["seconds"] for run in runs], marker="o", label=job)
        processor.plot(sizes, [run["cpu_s"] for run in runs], marker="o", label=job)
        memory.plot(sizes, [run["peak_rss_bytes"] / 1e9 for run in runs], marker="o", label=job)
    for axes, key in ((times, "seconds"), (processor, "cpu_s")):
        rows, most = max((cost["rows"], cost[key]) for cost in costs)
        axes.plot([rows / 100, rows], [most / 100, most], "k:", linewidth=1, label="linear")
        axes.set(xscale="log", yscale="log", xlabel="rows")
    times.set(title="Seconds")
    processor.set(title="Processor seconds of Spark")
    memory.set(title="Most memory of Spark, GB", xscale="log", xlabel="rows", ylim=(0, None))
    for axes in (times, processor, memory):
        axes.grid(alpha=0.3)
    times.legend(fontsize=8)
    return figure


PLOTS: dict[str, Callable[[], Figure | None]] = {
    "rates": rates,
    "lateness": lateness,
    "peers": peers,
    "pipeline": pipeline,
}


def main() -> None:
    """Write every plot to benchmarks/results, and print its name."""
    mpl.rcParams["svg.hashsalt"] = "light-scheduler"  # the same results give the same file
    for name, draw in PLOTS.items():
        if (figure := draw()) is not None:
            figure.tight_layout()
            figure.savefig(RESULTS / f"{name}.svg", metadata={"Date": None})
            print(RESULTS / f"{name}.svg")


if __name__ == "__main__":
    main()
