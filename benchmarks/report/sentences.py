"""Figures in sentences of other pages. Patterns mark their places."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .markdown import number, spread
from .results import Results
from .tables import failures


class Sentence(NamedTuple):
    """A sentence of a page with results."""

    page: str
    text: re.Pattern[str]
    """Each group is a figure; the rest stays unchanged."""

    figures: Callable[[Results], list[str]]


def filled(page: str, text: str, folder: Path) -> str:
    """Return the text of a page with the figures of the results in a folder.

    Raises LookupError if the page has no matching sentence.
    """
    for sentence in SENTENCES:
        if sentence.page == page:
            text = _said(sentence, text, Results(folder))
    return text


def _said(sentence: Sentence, text: str, results: Results) -> str:
    found = sentence.text.search(text)
    if found is None:
        raise LookupError(f"{sentence.page} has no sentence such as {sentence.text.pattern}")
    figures = sentence.figures(results)
    for group in range(sentence.text.groups, 0, -1):  # in reverse order, so that earlier positions stay valid
        start, end = found.span(group)
        text = text[:start] + figures[group - 1] + text[end:]
    return text


def _chaos(results: Results) -> list[str]:
    keys = (("firings",), ("faults",), ("faults_kill", "faults_broker_kill"))
    return [number(failures.total(results, failures.SEEDS, *each)) for each in keys]


def _gaps(name: str) -> Callable[[Results], list[str]]:
    keys = ("victims_lanes_still_s", "other_lanes_still_s")
    return lambda results: [spread(results.figure(name, key), 1) for key in keys]


def _outbox(results: Results) -> list[str]:
    document = results.document("outbox") or {}
    return [number(document.get(key, {}).get("p50")) for key in ("readable_ms", "accepted_ms")]


def _fair(results: Results) -> list[str]:
    delivered, late = results.figure("fair", "firings_per_s"), results.figure("fair", "lateness_p99_ms")
    return [
        number(delivered and round(delivered.median, -3)),
        number(late and late.median / 1_000, 1),
    ]


def _staged(results: Results) -> list[str]:
    found = (results.figure(name, "lateness_p50_ms") for name in ("steady-grid-unstaged", "steady-grid"))
    return [number(each and each.median) for each in found]


_FIGURE = r"(not measured|\S+)"
_OF_CHAOS = re.compile(rf"across {_FIGURE} messages and {_FIGURE} random\s+faults, including {_FIGURE} SIGKILLs")

SENTENCES = (
    Sentence("README.md", _OF_CHAOS, _chaos),
    Sentence("docs/guarantees.md", _OF_CHAOS, _chaos),
    Sentence(
        "docs/operating.md",
        re.compile(r"its `instance_id` \| (.+), mostly the start of the process \| (.+) \|"),
        _gaps("outage-worker-restarted"),
    ),
    Sentence(
        "docs/operating.md",
        re.compile(r"not started again \| (.+), mostly the session time-out \| (.+) \|"),
        _gaps("outage-worker-lost"),
    ),
    Sentence(
        "docs/operating.md",
        re.compile(rf"lowers the median lateness from {_FIGURE} to {_FIGURE} ms"),
        _staged,
    ),
    Sentence(
        "docs/outbox.md",
        re.compile(rf"two cores: {_FIGURE} ms \(median\) from the commit .+ in its topic, and {_FIGURE} ms until"),
        _outbox,
    ),
    Sentence(
        "docs/burst-control.md",
        re.compile(rf"of one tenant at {_FIGURE} per second, .+\sfirings per second had a p99 lateness of {_FIGURE} s"),
        _fair,
    ),
)
PAGES = sorted({sentence.page for sentence in SENTENCES})
