"""Outages and random faults."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.report.markdown import number, spread, table
from benchmarks.report.results import Results
from light_scheduler.bench.chaos.checker.verdict import wilson_upper
from light_scheduler.bench.figures import FAULT_KINDS

SEEDS = tuple(f"chaos-{seed}" for seed in range(71, 76))
THREE_BROKERS = "chaos-three-brokers"
BROKEN = ("missing", "duplicate", "early", "after_cancel", "wrong", "out_of_order", "unsettled")


def worker_outages(results: Results) -> str:
    """Gaps after the death of a worker."""
    kinds = {
        "outage-worker-restarted": "SIGKILL, restarted at once with its instance id",
        "outage-worker-lost": "SIGKILL, others take over",
    }
    keys = ("victims_lanes_still_s", "other_lanes_still_s")
    rows = ([title, *(spread(results.figure(name, key), 1) for key in keys)] for name, title in kinds.items())
    return table(["worker", "gap in its own partitions, s", "gap in those of the other worker, s"], rows)


def broker_outage(results: Results) -> str:
    """After the return of a broker."""
    name = "outage-broker"
    rows = [
        ["every partition has fired again, s", spread(results.figure(name, "first_firing_s"), 1)],
        ["firings are on time again, s", spread(results.figure(name, "on_time_again_s"), 1)],
        ["late afterwards, count", spread(results.figure(name, "late_afterwards"))],
    ]
    return table(["after the broker answers", ""], rows)


def rolling_restart(results: Results) -> str:
    """Lateness while each worker is restarted in turn."""
    name = "outage-rolling-restart"
    rows = [
        ["p99 in the worst second before, ms", spread(results.figure(name, "worst_second_before_p99_ms"))],
        ["p99 in the worst second of the restarts, ms", spread(results.figure(name, "worst_second_p99_ms"))],
        ["latest firing, ms", spread(results.figure(name, "latest_ms"))],
        ["all restarts, s", spread(results.figure(name, "restarts_s"), 1)],
    ]
    return table(["rolling restart", ""], rows)


def chaos(results: Results) -> str:
    """All seeds together, and three brokers."""
    columns = [[*SEEDS], [THREE_BROKERS]]
    keys = ("commands", "firings", *BROKEN, "faults", *(f"faults_{kind}" for kind in FAULT_KINDS))
    rows = [[_title(key), *(number(total(results, names, key)) for names in columns)] for key in keys]
    bounds = [number(upper_bound(results, names), 2) for names in columns]
    bound = ["failure rate: upper end of the 95 % Wilson interval, in a million", *bounds]
    return table(["", f"one broker, {len(SEEDS)} seeds", "three brokers"], [*rows, bound])


def _title(key: str) -> str:
    return key.removeprefix("faults_").replace("_", " ") if key != "faults" else "faults, of all kinds"


def total(results: Results, names: Sequence[str], *keys: str) -> float | None:
    """Return the sum of some figures over some runs."""
    found = [results.figure(name, key) for name in names for key in keys]
    return None if None in found else sum(each.median for each in found if each)


def faults(results: Results, names: Sequence[str]) -> float | None:
    """Return the number of faults in some runs."""
    return total(results, names, "faults")


def broken(results: Results, names: Sequence[str]) -> float | None:
    """Return the number of broken promises in some runs."""
    return total(results, names, *BROKEN)


def upper_bound(results: Results, names: Sequence[str]) -> float | None:
    """Return the upper end of the Wilson interval of the share of broken promises, per million."""
    promises, failed = total(results, names, "commands", "firings"), broken(results, names)
    if promises is None or failed is None:
        return None
    return wilson_upper(int(failed), int(promises)) * 1e6
