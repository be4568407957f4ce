"""The cost of jobs on Spark."""

from __future__ import annotations

from typing import Any

from benchmarks.report.markdown import NOT_MEASURED, number, table
from benchmarks.report.results import Results

JOBS = (
    "load",
    "worker",
    "import",
    "export",
    "forecast",
    "forecast of series",
    "archive",
    "audit",
    "audit-replay",
    "report",
)
LONG = ("audit-million", "audit-10m", "forecast-series")


def jobs(results: Results) -> str:
    """A row for each number of rows, a column for each job."""
    costs = costs_of(results, "pipeline")
    sizes = sorted({cost["rows"] for cost in costs})
    found = {(cost["job"], cost["rows"]): cost for cost in costs}
    shown = [job for job in JOBS if any(cost["job"] == job for cost in costs)]
    rows = [[number(size), *(_cell(found.get((job, size))) for job in shown)] for size in sizes]
    return table(["rows", *shown], rows)


def long_jobs(results: Results) -> str:
    """The jobs with their own targets."""
    rows = []
    for name in LONG:
        for cost in costs_of(results, name):
            memory = f"{cost['peak_rss_bytes'] / 1e9:.1f} GB"
            rows.append([cost["job"], number(cost["rows"]), _cell(cost), number(cost["rows_per_s"]), memory])
    return table(["job", "rows", "seconds (processor seconds)", "rows, 1/s", "memory of Spark, maximum"], rows)


def costs_of(results: Results, name: str) -> list[dict[str, Any]]:
    """Return the costs of a result; empty if it was not measured."""
    document = results.document(name)
    return [] if document is None else list(document["costs"])


def seconds(results: Results, name: str, job: str) -> float | None:
    """Return the duration of a job, s."""
    return next((cost["seconds"] for cost in costs_of(results, name) if cost["job"] == job), None)


def _cell(cost: dict[str, Any] | None) -> str:
    if cost is None:
        return NOT_MEASURED
    return f"{number(cost['seconds'], 1)} ({number(cost['cpu_s'])})"


def clearing(results: Results) -> str:
    """The steps of an audit in Python."""
    document = results.document("clearing") or {"microseconds": {}}
    steps = document["microseconds"].items()
    return table(["step of an audit", "processor time per schedule, us"], ([name, number(us, 1)] for name, us in steps))
