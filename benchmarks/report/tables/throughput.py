"""Rates and processor time of a worker at full speed."""

from __future__ import annotations

from benchmarks.report.markdown import NOT_MEASURED, median, number, spread, table
from benchmarks.report.results import Figure, Results

RUNS = {"ingest": "accepted_per_s", "burst": "firings_per_s", "burst-million": "firings_per_s"}
AGAINST = "against-f1ba380"


def throughput(results: Results) -> str:
    """Accepting and firing, each with the ceiling of the client."""
    rows = [
        ("rate, 1/s", [spread(results.figure(name, rate)) for name, rate in RUNS.items()]),
        *(
            (title, [spread(results.figure(name, key), digits) for name in RUNS])
            for title, key, digits in (
                ("ceiling of the client, 1/s", "ceiling_per_s", 0),
                ("share of the ceiling", "ratio_to_ceiling", 2),
                ("processor time of the worker per event, us", "worker_cpu_us_per_event", 1),
            )
        ),
        ("missing, duplicate, early", [faults(results, name) for name in RUNS]),
    ]
    heads = [f"`{name.partition('-')[0]}`, {number(results.setting(name, 'messages'))}" for name in RUNS]
    return table(["", *heads], ([title, *cells] for title, cells in rows))


def faults(results: Results, name: str) -> str:
    """Return the maximum numbers of missing, duplicate and early messages in any round."""
    found = [results.figure(name, key) for key in ("missing", "duplicate", "early")]
    return NOT_MEASURED if None in found else ", ".join(number(each.max) for each in found if each)


def against(results: Results) -> str:
    """This tree relative to the commit before its processor time was optimised."""
    keys = ("ingest_cpu", "ingest_rate", "burst_cpu", "burst_rate")
    cells = {key: spread(results.figure(AGAINST, f"{key}_ratio"), 2) for key in keys}
    return table(
        ["relative to `f1ba380`", "command (`ingest`)", "firing (`burst`)"],
        [
            ["processor time of the worker per event", cells["ingest_cpu"], cells["burst_cpu"]],
            ["rate", cells["ingest_rate"], cells["burst_rate"]],
        ],
    )


def scaling(results: Results) -> str:
    """The cost of an event when two share the partitions."""
    rows = []
    for title, name in (("two processes of one node", "scaling-processes"), ("two workers", "scaling")):
        for event, key in (("command", "accepting_us"), ("firing", "firing_us")):
            ratio = sharing_ratio(results, name, key)
            one, two = (results.figure(name, f"{key}_{count}") for count in (1, 2))
            rows.append([f"{event}, {title}", spread(one, 1), spread(two, 1), median(ratio, 2)])
    return table(["processor time per event, us", "one", "two", "ratio of the medians"], rows)


def sharing_ratio(results: Results, name: str, key: str) -> Figure | None:
    """Return the processor time per event with two, relative to one."""
    document = results.document(name)
    if document is None:
        return None
    ratio = document["two_workers_to_one"][key]
    return Figure(ratio, ratio, ratio)


def fair(results: Results) -> str:
    """A tenant with many due schedules, and one with few."""
    return table(
        ["", "`fair`"],
        [
            [
                f"first tenant: {number(results.setting('fair', 'messages'))} due at one instant, 1/s",
                spread(results.figure("fair", "firings_per_s")),
            ],
            [
                f"second tenant: {number(results.setting('fair', 'rate'))} due in a second, lateness p50, ms",
                spread(results.figure("fair", "lateness_p50_ms")),
            ],
            ["p99, ms", spread(results.figure("fair", "lateness_p99_ms"))],
            ["maximum, ms", spread(results.figure("fair", "lateness_max_ms"))],
        ],
    )
