"""Formats figures as text, and rows as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal

from .results import Figure, Results, commit_of

NOT_MEASURED = "not measured"


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with thousands separators, halves rounded up, or the text for a missing measurement."""
    if value is None:
        return NOT_MEASURED
    return f"{Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def median(figure: Figure | None, digits: int = 0) -> str:
    """Return the median of the rounds."""
    return NOT_MEASURED if figure is None else number(figure.median, digits)


def spread(figure: Figure | None, digits: int = 0) -> str:
    """Return the median of the rounds, with minimum and maximum if there was more than one round."""
    if figure is None:
        return NOT_MEASURED
    least, greatest = number(figure.min, digits), number(figure.max, digits)
    return median(figure, digits) + (f" ({least} to {greatest})" if figure.min != figure.max else "")


def size(figure: Figure | None) -> str:
    """Return bytes in MB, or GB if there are many."""
    if figure is None:
        return NOT_MEASURED
    return f"{figure.median / 1e9:.1f} GB" if figure.median >= 1e9 else f"{figure.median / 1e6:.0f} MB"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [_line(head), f"|{'---|' * len(head)}", *map(_line, rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|"


def link(name: str) -> str:
    """Return a link to a result."""
    return f"[{name}](results/{name}.json)"


def sources(results: Results, *, names_commits: bool) -> str:
    """Return a line with the results of a table: the load before each, remarks, and the commits if they differ."""
    by_commit: dict[str, list[str]] = {}
    for name, document in results.asked.items():
        if document is None:
            by_commit.setdefault("", []).append(name)
        else:
            said = ", ".join([f"{document['machine']['load_before']:.1f}", *results.remarks(name)])
            by_commit.setdefault(commit_of(document), []).append(f"{link(name)} ({said})")
    groups = []
    for commit, names in by_commit.items():
        said = NOT_MEASURED if not commit else f"commit {commit}" if names_commits else ""
        groups.append(", ".join(names) + (f": {said}" if said else ""))
    return f"Results, with the load before: {'; '.join(groups)}."
