"""Loading in a task of Spark: the rows of each piece of a file, validated and written, exactly once.

A piece is what Spark reads of a file in one go. Which pieces there are depends on nothing but the file (`PIECE_BYTES`),
and a file's rows come in one order, so that "the first n rows of this piece" means the same on every run, on any
machine. That number is the mark of a transaction: it moves on together with the records of these rows. Each piece has a
transactional id of its own, by which a run also ends what a killed one left open, and fences one that is still about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.clock import SystemClock
from light_scheduler.pipeline.kafka.marks import NOTHING_WRITTEN, Mark, MarkedProducer
from light_scheduler.pipeline.kafka.options import WriteOptions
from light_scheduler.pipeline.kafka.producing import Delivery

from .records import Record, RecordMaker, Refusal

PIECE_BYTES = 32 << 20
"""Another size makes other pieces, whose marks nobody has: a load that was begun would begin again."""

PLACE = ("_file", "_size", "_modified", "_block")
"""Columns that say which piece a row is from: path, size and time of the file, and where in it the piece begins."""

REPORT = (
    "file string, block bigint, row bigint, field string, reason string, content string, "
    "rows bigint, sent bigint, refused bigint"
)
"""What a task has to say: a row for each one that was refused (`row` counts from 1 within its piece), and one with the
counts of each batch, which has no reason."""


class Piece(NamedTuple):
    """What is read of a file in one go."""

    file: str
    size: int
    modified: int
    block: int

    @property
    def name(self) -> str:
        return hashlib.sha256("\0".join(map(str, self)).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class LoadTask:
    """What each task does; goes to it by pickle. Without `sink` rows are validated only.

    `name` is what the marks are kept under.
    """

    maker: RecordMaker
    topic: str
    name: str
    sink: WriteOptions | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Load batches of rows, which have the columns PLACE besides their own; yields rows as REPORT has them."""
        at: Piece | None = None
        with ExitStack() as open_loader:
            for batch in batches:
                for piece, rows in _pieces(batch):
                    if piece != at:
                        open_loader.close()
                        at = piece
                        loader = _Loader(self, piece, open_loader)
                    yield loader.load(rows)


class _Loader:
    """Loads the rows of one piece, batch by batch."""

    def __init__(self, task: LoadTask, piece: Piece, resources: ExitStack) -> None:
        self._task = task
        self._piece = piece
        self._marked: MarkedProducer | None = None
        self._row = 0
        mark = NOTHING_WRITTEN
        if task.sink is not None:
            name = f"{task.name}-{task.topic}-{piece.name}"
            self._marked = resources.enter_context(MarkedProducer(task.sink.client, name, task.topic))
            mark = self._marked.mark
        # Rows that were refused are in no log: the next run refuses them again, since it decides at the same instant.
        self._now = int(mark.note) if mark.note else SystemClock().now()
        self._done = max(0, mark.position)

    def load(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Write what is not written yet of the next rows of the piece, and report."""
        start, self._row = self._row, self._row + rows.num_rows
        made = list(self._task.maker.make(rows, self._now))
        new = [one for one in made[max(0, self._done - start) :] if isinstance(one, Record)]
        if self._marked is not None and self._row > self._done:
            with self._marked.transaction(Mark(self._row, str(self._now))) as producer:
                delivery = Delivery(producer)
                for record in new:
                    delivery.send(self._task.topic, record.key, record.value, record.headers)
                delivery.finish()
        return self._report(rows, start, made, len(new))

    def _report(self, rows: pa.RecordBatch, start: int, made: list[Record | Refusal], sent: int) -> pa.RecordBatch:
        refused = [(number, one) for number, one in enumerate(made) if isinstance(one, Refusal)]
        content = rows.select([column.name for column in self._task.maker.columns])
        lines: list[dict[str, Any]] = [
            {
                **self._place(),
                "row": start + number + 1,
                "field": refusal.field,
                "reason": refusal.reason,
                "content": str(content.slice(number, 1).to_pylist()[0]),
            }
            for number, refusal in refused
        ]
        lines.append({**self._place(), "rows": len(made), "sent": sent, "refused": len(refused)})
        return pa.RecordBatch.from_pylist(lines, schema=_SCHEMA)

    def _place(self) -> dict[str, Any]:
        return {"file": self._piece.file, "block": self._piece.block}


_TYPES = {"string": pa.string(), "bigint": pa.int64()}
_SCHEMA = pa.schema([(name, _TYPES[type]) for name, type in (column.split() for column in REPORT.split(", "))])


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[Piece, pa.RecordBatch]]:
    """Cut a batch where another piece begins."""
    if batch.num_rows == 0:
        return
    file, block = batch.column("_file"), batch.column("_block")
    changes = pc.or_(pc.not_equal(file[1:], file[:-1]), pc.not_equal(block[1:], block[:-1]))
    begins = [0, *(number + 1 for number in pc.indices_nonzero(changes).to_pylist()), batch.num_rows]
    for start, end in pairwise(begins):
        yield Piece(*(batch.column(name)[start].as_py() for name in PLACE)), batch.slice(start, end - start)
