"""Loading in a task of Spark: rows are validated and written in batches, exactly once.

A batch is identified by its content: a digest of its rows, of the values for all rows, and of the load's name and
topic. It is written in one transaction with a mark that has the digest, and is skipped if that mark exists. So files
may be copied, moved or touched. What must not change is how rows are split into batches: by file and PIECE_BYTES.

Between two versions of a Delta table, rows that were sent before can come back. There a batch is identified by its
content and the versions. A mark of the content alone is written too, for loads of whole tables.

A piece is the part of a file that Spark reads at once. Each piece has its own transactional id, by which a run also
aborts an open transaction of a killed run, and fences one that is still running.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from light_scheduler.clock import SystemClock
from light_scheduler.pipeline.kafka.options import WriteOptions

from .columns import Rows
from .files import FileMark, Guard, path_digest
from .malformed import FIELD, refusing, whys
from .marks import BatchMark, MarkingProducer, T, key_of
from .records import Record, RecordMaker, Refusal, identity_digest

PIECE_BYTES = 32 << 20
"""Changing it would change the batches, whose marks would not be found: every load would start over."""

PLACE = ("_file", "_block", "_size", "_modified")
"""Columns for the piece of a row: the file's path, the start of the piece in the file, and the file's size and
modification time (UTC epoch ms)."""

REFUSED = ("file", "block", "row", "field", "reason", "content")
"""Columns of the table of refused rows. `row` counts from 1 within its piece; `content` is the typed row, or null if
the row is malformed."""


COUNTS = ("rows", "sent", "refused", "bytes")


def report_schema(fields: list[StructField]) -> StructType:
    """Return the schema of a task's report about rows with these columns.

    There is a row for each refused row (REFUSED), and one for each batch, without a reason: its counts, and for each of
    its rows a number that identifies the id.
    """
    report = StructType()
    for name in ("file", "field", "reason"):
        report.add(name, StringType())
    for name in ("block", "row", *COUNTS):
        report.add(name, LongType())
    return report.add("ids", ArrayType(LongType())).add("content", StructType(fields))


class Piece(NamedTuple):
    """A block of a file that is read at once."""

    file: str
    block: int
    size: int
    modified: int

    @property
    def name(self) -> str:
        return hashlib.sha256(f"{self.file}\0{self.block}".encode()).hexdigest()[:24]


@dataclass(frozen=True)
class LoadTask:
    """The work of each Spark task, sent to it as a pickle. Without `connection`, rows are only validated.

    Batches have the columns PLACE besides those of the rows, and WHY if some may be malformed. Marks are stored under
    `name` in `marks_topic`. `connection` has the cluster as options of a Kafka format. `guard` knows the files that
    were sent before (None: none); it is not used with `sends_past`. `run` identifies this run of the load. `versions`
    identifies the versions of a Delta table between which the rows are new.
    """

    maker: RecordMaker
    topic: str
    name: str
    marks_topic: str
    connection: Mapping[str, str] | None
    guard: Guard | None = None
    sends_past: bool = False
    versions: tuple[Any, ...] = ()
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def between(self, versions: tuple[Any, ...]) -> LoadTask:
        """Return the task for rows that are new between versions."""
        return replace(self, versions=versions)

    def guarding(self, guard: Guard | None) -> LoadTask:
        """Return the task with another guard."""
        return replace(self, guard=guard)

    @property
    def scope(self) -> tuple[Any, ...]:
        """The scope of a mark: with another load, topic or constant, the same rows make other commands."""
        return self.name, self.topic, sorted(self.maker.constants.items())

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Load batches of rows. Yield rows of `report_schema`."""
        at: Piece | None = None
        for batch in batches:
            for piece, rows in _pieces(batch):
                if piece != at:
                    at = piece
                    loader = _Loader(self, piece)
                yield loader.load(rows)


def batch_key(task: LoadTask, rows: Rows, whys: Sequence[str | None] = ()) -> bytes:
    """Return the key of a batch: equal for rows with the same content, wherever and however they are stored.

    `whys` are the reasons of malformed rows, whose readable cells may equal those of a complete row.
    """
    said = [(name, cells) for name, cells in rows.fields if any(cell is not None for cell in cells)]
    return key_of(*task.scope, rows._replace(fields=said), *([list(whys)] if whys else []))


def mark_key(task: LoadTask, content: bytes) -> bytes:
    """Return the key of a batch's mark, given that of its content: rows that come back in a later version are new."""
    return key_of(content, *task.versions) if task.versions else content


class _Loader:
    """Loads the rows of one piece, batch by batch."""

    def __init__(self, task: LoadTask, piece: Piece) -> None:
        self._task = task
        self._piece = piece
        self._producer: MarkingProducer | None = None
        if task.connection is not None:
            client = WriteOptions.parse({**task.connection, "topic": task.topic}).client
            name = f"{task.name}-{task.topic}-{piece.name}"
            self._producer = MarkingProducer(client, name, task.connection, task.marks_topic)
        self._file = None if task.guard is None else task.guard.mark(piece.file, piece.size, piece.modified)
        self._sends_past = task.sends_past or task.guard is None
        self._file_key = key_of("file", *task.scope, path_digest(piece.file))
        self._row = 0
        self._now = SystemClock().now()

    def load(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write the next rows of the piece unless they are already written, and return the report."""
        start, self._row = self._row, self._row + batch.num_rows
        rows, reasons = self._task.maker.read(batch), whys(batch)
        content = batch_key(self._task, rows, reasons)
        key = mark_key(self._task, content)
        by = key_of(self._task.run, self._piece.name, start).hex()
        mark = self._mark(key, BatchMark)
        unsent = None if mark is None else mark.unsent()
        if mark is not None and unsent is not None:
            made, new = self._again(rows, reasons, mark.at, unsent)
        else:
            made, new = self._made(rows, reasons, mark)
        marks: dict[bytes, Struct] = {}
        if self._file is not None and self._mark(self._file_key, FileMark) is None:
            marks[self._file_key] = self._file
        if mark is None or new:
            marks[key] = marks[content] = self._mark_of(made, mark, by, len(new))
        self._write(new, marks)
        # A task that is run again, for example after the loss of an executor, finds what it wrote the first time.
        sent = mark.sent if mark is not None and mark.by == by and not new else len(new)
        return self._report(batch, start, made, sent)

    def _mark_of(self, made: list[Record | Refusal], before: BatchMark | None, by: str, sent: int) -> BatchMark:
        """Return the mark for a batch of which `sent` rows are sent; `before` is its existing mark, if any."""
        refused = {number: one for number, one in enumerate(made) if isinstance(one, Refusal)}
        is_held = any(refusal.held for refusal in refused.values())
        mark = BatchMark(self._now if before is None else before.at, len(made), is_held, by, sent)
        if before is None:
            return mark.refusing(refused)
        unsent = before.unsent()
        return mark if unsent is None else mark.refusing(unsent.intersection(refused))

    def _may_repeat(self) -> bool:
        """Return whether rows of a batch without a mark may have been sent."""
        if self._file is None:
            return False
        before = self._mark(self._file_key, FileMark)
        return self._file.held if before is None else before.holds_back(self._file)

    def _made(
        self, rows: Rows, reasons: Sequence[str | None], mark: BatchMark | None
    ) -> tuple[list[Record | Refusal], list[Record]]:
        """Return the outcome of rows, and the records to send, if there is no mark or it does not list refused rows."""
        # Refused rows are not in the log. They are refused again, since they are checked at the same instant.
        now = self._now if mark is None else mark.at
        may_repeat = self._may_repeat() if mark is None else mark.held
        whole = list(self._task.maker.make(rows, now, holds_past=may_repeat and not self._sends_past))
        made = refusing(whole, reasons)
        if mark is None:
            return made, [one for one in made if isinstance(one, Record)]
        return made, self._held(rows, now, made) if may_repeat and self._sends_past else []

    def _held(self, rows: Rows, now: int, made: list[Record | Refusal]) -> list[Record]:
        """Return the records of rows that were held back when their batch was sent."""
        before = self._task.maker.make(rows, now, holds_past=True)
        return [
            one
            for one, then in zip(made, before, strict=True)
            if isinstance(one, Record) and isinstance(then, Refusal) and then.held
        ]

    def _again(
        self, rows: Rows, reasons: Sequence[str | None], then: int, unsent: Set[int]
    ) -> tuple[list[Record | Refusal], list[Record]]:
        """Return the outcome of rows that were first checked at `then`, and the records to send among those `unsent`.

        These are valid now if a limit was raised. They may still have been sent, from the table of refused rows.
        """
        made = refusing(list(self._task.maker.make(rows, then)), reasons)
        passing = [number for number in sorted(unsent) if isinstance(made[number], Record)]
        if passing:
            today = list(self._task.maker.make(rows, self._now, holds_past=not self._sends_past))
            for number in passing:
                made[number] = today[number]
        return made, [one for number in passing if isinstance(one := made[number], Record)]

    def _write(self, records: list[Record], marks: Mapping[bytes, Struct]) -> None:
        if self._producer is None or not marks:
            return
        with self._producer.transaction(marks) as delivery:
            for record in records:
                delivery.send(self._task.topic, record.key, record.value, record.headers)

    def _mark(self, key: bytes, type: type[T]) -> T | None:
        return None if self._producer is None else self._producer.marks.get(key, type)

    def _report(self, batch: pa.RecordBatch, start: int, made: list[Record | Refusal], sent: int) -> pa.RecordBatch:
        refused = [(number, one) for number, one in enumerate(made) if isinstance(one, Refusal)]
        place = {"file": self._piece.file, "block": self._piece.block}
        lines: list[dict[str, Any]] = [
            {**place, "row": start + number + 1, "field": refusal.field, "reason": refusal.reason}
            for number, refusal in refused
        ]
        ids = [identity_digest(one) for one in made if isinstance(one, Record)]
        size = sum(len(one.key) + len(one.value or b"") for one in made if isinstance(one, Record))
        counts = {"rows": len(made), "sent": sent, "refused": len(refused), "bytes": size}
        lines.append({**place, **counts, "ids": ids})
        content = batch.select([column.name for column in self._task.maker.columns]).to_struct_array()
        # Cells of a malformed row may be cut off, so its content is null. So is the last one, since the counts belong
        # to no row.
        whole = [None if refusal.field == FIELD else number for number, refusal in refused]
        rows = content.take(pa.array([*whole, None], pa.int32()))
        report = pa.RecordBatch.from_pylist(lines, schema=_SCHEMA)
        return report.append_column("content", rows)


_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("file", "field", "reason")),
        *((name, pa.int64()) for name in ("block", "row", *COUNTS)),
        ("ids", pa.list_(pa.int64())),
    ]
)


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[Piece, pa.RecordBatch]]:
    """Split a batch where another piece begins."""
    if batch.num_rows == 0:
        return
    file, block = batch.column("_file"), batch.column("_block")
    changes = pc.or_(pc.not_equal(file[1:], file[:-1]), pc.not_equal(block[1:], block[:-1]))
    begins = [0, *(number + 1 for number in pc.indices_nonzero(changes).to_pylist()), batch.num_rows]
    for start, end in pairwise(begins):
        yield Piece(*(batch.column(name)[start].as_py() for name in PLACE)), batch.slice(start, end - start)
