"""The lateness of firings as a consumer sees it."""

from __future__ import annotations

from benchmarks.report.markdown import median, number, spread, table
from benchmarks.report.results import Results

RUNS = {
    "steady": "due times spread evenly (`steady`)",
    "steady-10m": "the same with 10 million others pending",
    "steady-grid": "all of a second due at the full second (`--grid 1s`)",
    "steady-grid-unstaged": "the same with nothing prepared ahead (`--stage-ahead 0ms`)",
    "instants": "the same with four producers of the C client and no scheduler (`instants.py`)",
}
PERCENTILES = ("lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms")


def lateness(results: Results) -> str:
    """1,000 firings a second."""
    rows = ([title, *(spread(results.figure(name, key)) for key in PERCENTILES)] for name, title in RUNS.items())
    return table(["ms", "p50", "p99", "maximum"], rows)


def recurring(results: Results) -> str:
    """Cron schedules that all fire at each full minute."""
    cells = [spread(results.figure("recurring", key)) for key in PERCENTILES]
    cpu = median(results.figure("recurring", "worker_cpu_us_per_event"), 1)
    title = f"{number(results.setting('recurring', 'messages'))} cron schedules (`recurring`)"
    return table(["", "p50, ms", "p99, ms", "maximum, ms", "processor time per firing, us"], [[title, *cells, cpu]])
