"""Access to the results in benchmarks/results, for the tables."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kept.measurements import MEASUREMENTS, Measurement

Document = dict[str, Any]
BUSY_LOAD = 1.0
"""Load before a command from which on its figures count as those of a busy machine."""

OTHER_COMMAND = "made by another command"
_KNOWN = {each.name: each for each in MEASUREMENTS}


class Figure(NamedTuple):
    """The median, minimum and maximum of the rounds of a run."""

    median: float
    min: float
    max: float

    def over(self, divisor: float) -> Figure:
        """Return the figure in another unit."""
        return Figure(*(value / divisor for value in self))


class Results:
    """Reads results, and records which were used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Document | None] = {}

    @property
    def asked(self) -> dict[str, Document | None]:
        """Each result that was used; None if it was not measured."""
        return self._read

    def document(self, name: str) -> Document | None:
        """Return a result, if it was measured."""
        if name not in self._read:
            file = self._folder / f"{name}.json"
            self._read[name] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        return self._read[name]

    def figure(self, name: str, key: str) -> Figure | None:
        """Return a figure of a result, if it was measured."""
        document = self.document(name)
        return None if document is None else figure_of(document, key)

    def setting(self, name: str, key: str) -> Any:
        """Return a setting of a result, or of its command; None: it was not measured, and its command does not set
        it."""
        document = self.document(name)
        return option_of(_KNOWN[name], key) if document is None else document["settings"].get(key)

    def remarks(self, name: str) -> list[str]:
        """Return remarks needed to judge a result, such as a busy or different machine."""
        document = self.document(name)
        if document is None:
            return []
        found = ["busy machine"] if document["machine"]["load_before"] > BUSY_LOAD else []
        if document.get("command", _KNOWN[name].shown) != _KNOWN[name].shown:
            found.append(OTHER_COMMAND)
        processor = document["machine"]["cpu"]
        found += [f"on another machine: {processor}"] if processor != self._usual_processor else []
        return found + ([document["note"]] if "note" in document else [])

    @cached_property
    def _usual_processor(self) -> str | None:
        """Return the processor of most results."""
        files = sorted(self._folder.glob("*.json"))
        processors = Counter(json.loads(file.read_text(encoding="utf-8"))["machine"]["cpu"] for file in files)
        return max(processors, key=processors.__getitem__, default=None)


def figure_of(document: Document, key: str) -> Figure | None:
    """Return a figure from `figures`, which is a number, or median, minimum and maximum."""
    found = document["figures"].get(key)
    if found is None:
        return None
    if isinstance(found, dict):
        return Figure(found["median"], found["min"], found["max"])
    return Figure(found, found, found)


def option_of(measurement: Measurement, key: str) -> int | None:
    """Return the number that a command gives for an option; None if it omits the option."""
    words = measurement.command.split()
    option = f"--{key}"
    return int(words[words.index(option) + 1]) if option in words else None


def day_of(document: Document) -> str | None:
    """Return the day (UTC) on which a result was measured, if it was recorded."""
    return f"{datetime.fromtimestamp(document['at'] / 1_000, UTC):%Y-%m-%d}" if "at" in document else None


def commit_of(document: Document) -> str:
    """Return the abbreviated commit of a result."""
    commit: str = document.get("versions", {}).get("commit", "")
    return f"`{commit}`" if commit else "not recorded"
