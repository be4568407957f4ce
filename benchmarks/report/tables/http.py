"""Clients that query over HTTP while schedules fire."""

from __future__ import annotations

from typing import Any

from benchmarks.report.markdown import NOT_MEASURED, number, table
from benchmarks.report.results import Results

MILLION, TEN_MILLION = "pages", "pages-10m"


def listing(results: Results) -> str:
    """Lists that are requested without pause."""
    document = results.document("listing") or {"found": []}
    head = ["in turn", "lateness p50, ms", "p99, ms", "maximum, ms", "answers with 200, 1/s", "with 429, 1/s"]
    return table(head, (_load(name, found) for name, found in document["found"]))


def _load(name: str, found: dict[str, Any]) -> list[str]:
    lateness = [number(found[f"lateness_{key}_ms"]) for key in ("p50", "p99", "max")]
    return [name, *lateness, *(number(found["answers_per_s"].get(status, 0.0), 1) for status in ("200", "429"))]


def pages(results: Results) -> str:
    """Each page of the HTTP API, from the fastest to the slowest."""
    million, ten = (_pages(results, name) for name in (MILLION, TEN_MILLION))
    names = sorted(
        {**million, **ten}, key=lambda name: (name not in million, (million.get(name) or ten[name])["p95_ms"])
    )
    rows = ([f"`{name}`", *_times(million.get(name)), _times(ten.get(name))[2]] for name in names if name != "all")
    return table(["page", "visits", "p50, ms", "p95, ms", "p95 with 10 million pending, ms"], rows)


def _pages(results: Results, name: str) -> dict[str, Any]:
    document = results.document(name)
    return {} if document is None else dict(document["pages"])


def _times(page: dict[str, Any] | None) -> list[str]:
    if page is None:
        return [NOT_MEASURED] * 3
    return [number(page["visits"]), number(page["p50_ms"], 1), number(page["p95_ms"], 1)]


def visited(results: Results) -> str:
    """Firings during visits, and the cost of dashboards."""
    documents = [results.document(name) for name in (MILLION, TEN_MILLION)]
    lines: dict[str, list[str]] = {}
    for document in documents:
        for title, cell in _beside(document).items():
            lines.setdefault(title, []).append(cell)
    return table(["pending", "1 million", "10 million"], ([title, *cells] for title, cells in lines.items()))


def _beside(document: dict[str, Any] | None) -> dict[str, str]:
    def shown(key: str, load: str) -> str:
        return ", ".join(number(each[key]) for each in document["firings"][load]) if document else NOT_MEASURED

    def part(digits: int, *keys: str) -> str:
        value: Any = document
        for key in keys if document else ():
            value = value[key]
        return number(value, digits)

    answers = sum(page["statuses"].get("200", 0) for page in document["pages"].values()) if document else None
    visits = sum(page["visits"] for page in document["pages"].values()) if document else None
    return {
        "lateness p99 without clients, ms, by round": shown("lateness_p99_ms", "quiet"),
        "with clients": shown("lateness_p99_ms", "visited"),
        "ratio of p99, median of the rounds": part(2, "lateness_p99_ms_to_quiet"),
        "ratio of the rates of firings": part(3, "fired_per_s_to_quiet"),
        "answers other than 200": number(visits - answers if visits is not None and answers is not None else None),
        "open dashboards": part(0, "dashboards", "dashboards"),
        "their streams, % of a core": part(1, "dashboards", "streams_percent_of_a_core"),
        "streams and charts, % of a core": part(1, "dashboards", "streams_and_charts_percent_of_a_core"),
    }


def outbox(results: Results) -> str:
    """From the commit of a booking in PostgreSQL."""
    document = results.document("outbox") or {}
    kinds = {"readable_ms": "until its command can be read in the topic", "accepted_ms": "until it is accepted"}
    rows = (
        [title, *(number(document.get(key, {}).get(p), 0) for p in ("p50", "p99", "max"))]
        for key, title in kinds.items()
    )
    return table(["ms after the commit", "p50", "p99", "maximum"], rows)
