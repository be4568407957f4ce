"""Other schedulers with the same one-shots."""

from __future__ import annotations

from typing import Any

from benchmarks.report.markdown import number, table
from benchmarks.report.results import Document, Figure, Results

FIGURES = {
    "accepted_per_s": ("accepted, 1/s", 0),
    "burst_per_s": ("burst, 1/s", 0),
    "lateness_p50_ms": ("lateness p50, ms", 0),
    "lateness_p99_ms": ("p99, ms", 0),
    "scheduler_bytes_per_pending": ("memory of the scheduler, B per pending", 0),
    "store_bytes_per_pending": ("store, B per pending", 0),
    "killed_after": ("delivered at SIGKILL", 0),
    "killed_missing": ("missing", 0),
    "killed_duplicate": ("duplicate", 0),
    "killed_to_last_s": ("last delivery after it, s", 1),
}


def peers(results: Results) -> str:
    """All of them."""
    return _table(results.document("peers"))


def node(results: Results) -> str:
    """One and two processes, compared with the punctuator."""
    return _table(results.document("peers-node"))


def _table(document: Document | None) -> str:
    contestants: dict[str, Any] = document["contestants"] if document else {}
    rows = [[each["title"], *(_median(each, key) for key in FIGURES)] for each in contestants.values()]
    return table(["", *(title for title, _ in FIGURES.values())], rows)


def _median(contestant: dict[str, Any], key: str) -> str:
    found = contestant["figures"].get(key)
    return number(found["median"], FIGURES[key][1]) if found else ""


def relative(results: Results, name: str, key: str, ours: str, theirs: str) -> Figure | None:
    """Return our figure relative to theirs: the ratio of medians of the same rounds."""
    document = results.document(name)
    if document is None:
        return None
    one, other = (document["contestants"][each]["figures"][key]["median"] for each in (ours, theirs))
    return Figure(*[one / other] * 3)
