"""The footprint of many pending schedules, and the time to restore them."""

from __future__ import annotations

from benchmarks.report.markdown import median, number, size, spread, table
from benchmarks.report.results import Figure, Results

RECOVERIES = ("recovery", "recovery-10m")


def memory(results: Results) -> str:
    """A worker with nothing due."""
    names = ("memory", "memory-10m")
    return table(
        ["pending", *(number(results.setting(name, "pending")) for name in names)],
        [
            ["memory", *(size(results.figure(name, "rss_bytes")) for name in names)],
            ["disk", *(size(results.figure(name, "disk_bytes")) for name in names)],
            ["processor, % of a core", *(median(results.figure(name, "idle_cpu_percent"), 1) for name in names)],
        ],
    )


def scan_cost(results: Results) -> str:
    """Bursts with few and with many others pending."""
    name = "scan-cost-10m"
    few, many = (median(results.figure(name, key)) for key in ("ceiling_per_s", "firings_per_s"))
    ratio = median(results.figure(name, "ratio_to_ceiling"), 2)
    head = [f"bursts of {number(results.setting(name, 'messages'))}", "rate, 1/s"]
    pending = number(results.setting(name, "pending"))
    return table(head, [["10,000 others pending", few], [f"{pending} others pending", many], ["ratio", ratio]])


def recovery(results: Results) -> str:
    """Starts of a worker with and without its state."""
    rows = [
        [title, *(spread(results.figure(name, key), 1) for name in RECOVERIES)]
        for title, key in (
            ("with its state, after `kill -9`: to the first firing, s", "restart_after_kill_to_first_firing_s"),
            ("with its state, after an orderly stop: to the first firing, s", "restart_to_first_firing_s"),
            ("takeover by a warm standby, session time-out included, s", "failover_s"),
        )
    ]
    rates = ["without its state: changelog records, 1/s"]
    seconds = ["without its state: until all are back, s"]
    for name in RECOVERIES:
        rates.append(spread(results.figure(name, "recovered_per_s")))
        seconds.append(spread(cold_start(results, name), 1))
    pending = (number(results.setting(name, "pending")) for name in RECOVERIES)
    return table(["pending", *pending], [*rows[:2], rates, seconds, rows[2]])


def cold_start(results: Results, name: str) -> Figure | None:
    """Return how long (s) a worker without state takes to restore all pending schedules."""
    rate = results.figure(name, "recovered_per_s")
    if rate is None:
        return None
    pending = results.setting(name, "pending")
    return Figure(pending / rate.median, pending / rate.max, pending / rate.min)


def update_cost(results: Results) -> str:
    """New schedules and replacements with many others pending."""
    name = "update-cost-50m"
    pending = number(results.setting(name, "pending"))
    rows = [
        (
            title,
            median(results.figure(name, f"{key}_per_s")),
            median(results.figure(name, f"{key}_ratio_to_few"), 2),
            median(results.figure(name, f"{key}_cpu_ratio_to_few"), 2),
        )
        for title, key in (("new schedules", "accepted"), ("replacements at random", "replaced"))
    ]
    head = [
        f"{pending} pending",
        "1/s",
        "rate relative to a million",
        "processor time of the worker relative to a million",
    ]
    held = f"Memory {size(results.figure(name, 'rss_bytes'))}, disk {size(results.figure(name, 'disk_bytes'))}."
    return f"{table(head, rows)}\n\n{held}"
