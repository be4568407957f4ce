"""The cost of commands of each dialect, relative to native."""

from __future__ import annotations

from typing import Any

from benchmarks.report.markdown import number, table
from benchmarks.report.results import Results

LANES = "dialect-lanes"
WORKERS = "dialect-rounds"
ALONE = "dialects"


def dialects(results: Results) -> str:
    """A row for each dialect: its codec alone, a lane, a whole worker."""
    alone, lanes, workers = (_by_dialect(results, name) for name in (ALONE, LANES, WORKERS))
    rows = []
    for name in dict.fromkeys((*alone, *lanes, *workers)):
        own, lane, worker = (found.get(name, {}) for found in (alone, lanes, workers))
        rows.append(
            [
                name,
                _cell(own, "take_us", 1),
                _cell(own, "message_us", 1),
                _cell(lane, "us", 1),
                _cell(lane, "by_round", 2),
                _cell(worker, "accepted_per_s", 0),
                _cell(worker, "rate_to_native", 2),
                _cell(worker, "cpu_to_native", 2),
            ]
        )
    head = ["", "command, us", "message, us", "lane, us", "to native", "worker, 1/s", "rate to native"]
    return table([*head, "processor time to native"], rows)


def _by_dialect(results: Results, name: str) -> dict[str, dict[str, Any]]:
    document = results.document(name) or {"dialects": {}}
    return {dialect.replace(":framed", ", framed"): found for dialect, found in document["dialects"].items()}


def _cell(found: dict[str, Any], key: str, digits: int) -> str:
    return number(found[key], digits) if key in found else ""
