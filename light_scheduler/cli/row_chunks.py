"""Chunks of rows that are sent together, and the rows in them that can be sent."""

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
"""Size of the rows that are sent and answered before more are read."""


class RefusedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line in the file of refused rows."""

    line: int
    field: str | None
    reason: str
    row: str


class RefusedRows:
    """The file of refused rows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> WrittenFile:
        """Return the file and its current size."""
        return WrittenFile(str(self._path.absolute()), self._path.stat().st_size if self._path.exists() else 0)

    def append(self, refused: list[RefusedRow]) -> None:
        """Append rows. They are on disk when this returns."""
        if refused:
            with self._path.open("ab") as file:
                file.writelines(msgspec.json.encode(each) + b"\n" for each in refused)
                file.flush()
                os.fsync(file.fileno())

    def take_back(self, before: WrittenFile | None) -> None:
        """Remove the rows added since `before`, if that was this file."""
        now = self.now()
        if before is not None and before.path == now.path and before.size < now.size:
            os.truncate(self._path, before.size)


def chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows in chunks. The rows of a chunk are read only when it is requested."""
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
    """Split a chunk into rows that can be sent, and refused rows: one row that the topic refuses would block all
    others."""
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
