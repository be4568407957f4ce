"""How far the commands of a file have been sent. It is stored in a file next to it, so that the next run continues
there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

STATE_SUFFIX = ".state.json"

_LINE_ENDS = (b"\n", b"\r\n")


class Position(msgspec.Struct, frozen=True):
    """The position after the first `lines` lines of a file: `size` is their bytes, and this is their SHA-256."""

    lines: int
    size: int
    sha256: str


class WrittenFile(msgspec.Struct, frozen=True):
    """A file and its size at some moment (bytes)."""

    path: str
    size: int


class LoadState(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a load: the first `lines` lines are done; `sha256` is that of their bytes. `name` identifies the
    load.

    With `in_flight`, later rows may have been sent: a mark in Kafka says which. `refused_file` is the file of refused
    rows before them.
    """

    name: str
    lines: int = 0
    size: int = 0
    sha256: str = ""
    sent: int = 0
    refused: int = 0
    refused_file: WrittenFile | None = None
    in_flight: bool = False


class FileChangedError(Exception):
    """The lines that were already loaded have changed."""


class FileInUseError(Exception):
    """Another process is loading the file."""


class LoadedLines:
    """The lines of a file that have not been loaded, one by one. `number` is that of the last line read.

    A context manager that only one process can enter at a time. Raises OSError, ValueError for an invalid state file or
    lines that are not UTF-8, FileChangedError, FileInUseError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state_path = path.with_name(path.name + STATE_SUFFIX)
        self._hash = self._hash_before = hashlib.sha256()
        self._last = b""
        self.state = LoadState(name="")
        self.end: int | None = None
        """The last line to read; None: the last one of the file."""
        self.size = path.stat().st_size
        """Size of the whole file, bytes."""
        self.number = self.position = 0
        self.first = ""
        """The first line of the file."""

    def __enter__(self) -> Self:
        self._file = self._path.open("rb")
        try:
            self._lock()
            self.state = self._stored()
            with self._path.open("rb") as file:
                self.first = _text(file.readline(), 1)
            while self.number < self.state.lines and (line := self._file.readline()):
                self._count(line)
            if self.state.lines and not self.is_at(Position(self.state.lines, self.state.size, self.state.sha256)):
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
        while self.number != self.end and (line := self._file.readline()):
            self._count(line)
            yield _text(line, self.number)

    def here(self) -> Position:
        """Return the current position."""
        return Position(self.number, self.position, self._hash.hexdigest())

    def is_at(self, position: Position) -> bool:
        """Return whether the lines that were read are exactly those before a position.

        The last line may have had no newline then: programs that append to such a file begin with one.
        """
        if self.here() == position:
            return True
        kept = len(self._last) - (self.position - position.size)
        if position.lines != self.number or self._last[kept:] not in _LINE_ENDS:
            return False
        whole = self._hash_before.copy()
        whole.update(self._last[:kept])
        return whole.hexdigest() == position.sha256

    def begin(self, refused_file: WrittenFile) -> None:
        """Record that the rows after the completed ones are about to be sent."""
        self.state = replace(self.state, in_flight=True, refused_file=refused_file)
        self.keep()

    def store(self, done: Position, *, sent: int, refused: int) -> None:
        """Record that everything up to a position is done, with additional counts of sent and refused rows."""
        self.state = replace(
            self.state,
            **msgspec.structs.asdict(done),
            sent=self.state.sent + sent,
            refused=self.state.refused + refused,
            in_flight=False,
        )
        self.keep()

    def keep(self) -> None:
        """Write the state atomically."""
        new = self._state_path.with_name(self._state_path.name + ".new")
        with new.open("wb") as file:
            file.write(msgspec.json.encode(self.state) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._state_path)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileInUseError from None

    def _stored(self) -> LoadState:
        try:
            return msgspec.json.decode(self._state_path.read_bytes(), type=LoadState)
        except FileNotFoundError:
            return LoadState(name=str(uuid.uuid4()))
        except msgspec.MsgspecError as error:
            raise ValueError(f"{self._state_path} is not the state of a load: {error}") from None

    def _count(self, line: bytes) -> None:
        self._hash_before, self._last = self._hash.copy(), line
        self._hash.update(line)
        self.number += 1
        self.position += len(line)


def _text(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"line {number} is not UTF-8 (its byte {error.start + 1} is 0x{line[error.start]:02x}): convert the file, "
            "such as with `iconv -f latin1 -t utf-8`, or from UTF-16 with `-f utf-16`"
        ) from None
