"""Rows of a file, in the chunks that are sent together, and those of them that can be sent at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from light_scheduler.client.channel import MakeCommand

from .command_rows import Row
from .file_position import WrittenFile

CHUNK = 500
CHUNK_CHARACTERS = 8 << 20
"""Rows that are sent, and answered, before the next ones are read."""


class RefusedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was refused, in the file of those."""

    line: int
    field: str | None
    reason: str
    row: str


class RefusedRows:
    """The file of refused rows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> WrittenFile:
        """Return the file as it is."""
        return WrittenFile(str(self._path.absolute()), self._path.stat().st_size if self._path.exists() else 0)

    def append(self, refused: list[RefusedRow]) -> None:
        """Add rows. They are on the disk when this returns."""
        if refused:
            with self._path.open("ab") as file:
                file.writelines(msgspec.json.encode(each) + b"\n" for each in refused)
                file.flush()
                os.fsync(file.fileno())

    def take_back(self, before: WrittenFile | None) -> None:
        """Take away what was added since `before`, if that was this file."""
        now = self.now()
        if before is not None and before.path == now.path and before.size < now.size:
            os.truncate(self._path, before.size)


def chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows in chunks. After each of them, no row is read before the next one is asked for."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.text)
        if len(chunk) >= CHUNK or size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def checked(chunk: list[Row], largest: int) -> tuple[list[tuple[Row, MakeCommand]], list[RefusedRow]]:
    """Return the rows that can be sent, and those that cannot: one that the topic refuses would stop all others."""
    right: list[tuple[Row, MakeCommand]] = []
    refused: list[RefusedRow] = []
    for row in chunk:
        field, reason = row.field, row.reason
        if row.make is not None and len(row.make(None).value or b"") > largest:
            field, reason = "payload", f"is larger than {largest} bytes"
        if row.make is None or reason is not None:
            refused.append(RefusedRow(line=row.line, field=field, reason=reason or "", row=row.text))
        else:
            right.append((row, row.make))
    return right, refused
