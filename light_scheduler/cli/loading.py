"""How far a file has been loaded: kept in a file beside it, so that a load goes on where it ended."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

STATE_SUFFIX = ".state.json"


class LoadState(msgspec.Struct, frozen=True, kw_only=True):
    """What has been answered: the first `lines` lines, whose bytes have this SHA-256. `name` is the load's own."""

    name: str
    lines: int = 0
    size: int = 0
    sha256: str = ""
    sent: int = 0
    refused: int = 0


class FileChangedError(Exception):
    """The lines that were loaded before are others now."""


class LoadedLines:
    """The lines of a file that have not been loaded, one by one. `number` is that of the last one that was read.

    A context manager. Raises OSError, ValueError for a state file that is none, UnicodeDecodeError, FileChangedError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state_path = path.with_name(path.name + STATE_SUFFIX)
        self._hash = hashlib.sha256()
        self.state = self._stored()
        self.size = path.stat().st_size
        """Of the whole file, bytes."""
        self.number = self.position = 0
        self.first = ""
        """The first line of the file."""

    def __enter__(self) -> Self:
        self._file = self._path.open("rb")
        try:
            with self._path.open("rb") as file:
                self.first = file.readline().decode("utf-8-sig")
            while self.number < self.state.lines and (line := self._file.readline()):
                self._count(line)
            if (self.number, self.position) != (self.state.lines, self.state.size) or (
                self.number and self._hash.hexdigest() != self.state.sha256
            ):
                raise FileChangedError
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    @property
    def name(self) -> str:
        """The load's name, a UUID."""
        return self.state.name

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self._count(line)
            yield line.decode("utf-8-sig" if self.number == 1 else "utf-8")

    def mark(self) -> tuple[int, int, str]:
        """Return where the lines are: number, position, SHA-256."""
        return self.number, self.position, self._hash.hexdigest()

    def store(self, mark: tuple[int, int, str], *, sent: int, refused: int) -> None:
        """Note that all is answered up to a mark, with so many more rows sent and refused."""
        lines, size, digest = mark
        before = self.state
        self.state = LoadState(
            name=before.name,
            lines=lines,
            size=size,
            sha256=digest,
            sent=before.sent + sent,
            refused=before.refused + refused,
        )
        self.keep()

    def keep(self) -> None:
        """Write the state: at once, or not at all."""
        new = self._state_path.with_name(self._state_path.name + ".new")
        with new.open("wb") as file:
            file.write(msgspec.json.encode(self.state) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._state_path)

    def _stored(self) -> LoadState:
        try:
            return msgspec.json.decode(self._state_path.read_bytes(), type=LoadState)
        except FileNotFoundError:
            return LoadState(name=str(uuid.uuid4()))
        except msgspec.MsgspecError as error:
            raise ValueError(f"{self._state_path} is not the state of a load: {error}") from None

    def _count(self, line: bytes) -> None:
        self._hash.update(line)
        self.number += 1
        self.position += len(line)
