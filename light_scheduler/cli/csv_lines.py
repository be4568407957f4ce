"""Rows of CSV (RFC 4180) with the options of `schedule` as columns: their cells, or their errors."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from light_scheduler.client import ScheduleRequest
from light_scheduler.wire.fields import closest

from .file_position import LoadedLines

HEADER = "header."
"""Prefix of the columns that are headers of the message."""

MOST_FIELD_CHARACTERS = 16 << 20
"""Maximum size of a cell. It is larger than any message; by then, the reader has the whole cell in memory."""

_COLUMNS = {"id", "key", "payload", "target-topic", "tenant"} | {
    name.replace("_", "-") for name in ScheduleRequest.__annotations__ if name not in ("topic", "headers")
}


@dataclass(frozen=True)
class Cells:
    """A row: the number of its last line, its text, and its cells or an error."""

    line: int
    text: str
    cells: list[str] = field(default_factory=list)
    reason: str | None = None


def columns_of(line: str) -> list[str]:
    """Return the names of the columns. Raises ValueError if they cannot be used."""
    try:
        columns = next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise ValueError(
            f"line 1, which has to name the columns, is not CSV: {error}. Close its quotes, and end lines with \\n or "
            "\\r\\n"
        ) from None
    if not columns:
        raise ValueError("line 1 is empty: it has to name the columns, such as id,at,target-topic,payload")
    for name in columns:
        if name not in _COLUMNS and not (name.startswith(HEADER) and name != HEADER):
            hint = " Separate cells by commas." if columns == [name] else ""
            known = f"{', '.join(sorted(_COLUMNS))}, {HEADER}NAME.{hint}"
            raise ValueError(f"column {name!r} is not known{closest(name, _COLUMNS) or '.'} Columns: {known}")
    repeated = [name for name, times in Counter(columns).items() if times > 1]
    if repeated:
        raise ValueError(f"line 1 names the column {repeated[0]!r} more than once: rename or remove one of them")
    return columns


def csv_rows(lines: LoadedLines) -> Iterator[Cells]:
    """Read rows from the current position of the lines. Raises ValueError for an unclosed quote, since everything up to
    the end of the file would be one cell."""
    csv.field_size_limit(MOST_FIELD_CHARACTERS)
    noted = _Noted(lines)
    reader = csv.reader(noted, strict=True)
    while True:
        noted.texts.clear()
        begin = lines.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if noted.has_ended or (len(noted.texts) > 1 and sum(map(len, noted.texts)) > MOST_FIELD_CHARACTERS):
                raise ValueError(
                    f"a quote is opened in the row that begins in line {begin}, and not closed: close it, or write it "
                    "twice, within quotes, if it is part of the cell"
                ) from None
            place = "" if begin == lines.number else f", from line {begin} on"
            yield Cells(lines.number, noted.text, reason=f"is not CSV{place}: {error}")
        else:
            if cells:
                yield Cells(lines.number, noted.text, cells)


class _Noted:
    """Lines that the CSV reader has consumed for the current row."""

    def __init__(self, lines: LoadedLines) -> None:
        self._lines = iter(lines)
        self.texts: list[str] = []
        self.has_ended = False

    @property
    def text(self) -> str:
        return "".join(self.texts).rstrip("\r\n")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for line in self._lines:
            self.texts.append(line)
            return line
        self.has_ended = True
        raise StopIteration
