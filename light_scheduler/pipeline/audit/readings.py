"""From Kafka's columns to evidence, on Arrow batches: where records are read, or behind another source of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.engine import Limits
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.model import BulkCommand
from light_scheduler.pipeline.schemas import arrow_schema
from light_scheduler.wire import dialect_named
from light_scheduler.wire.dialects.compatible import CompatibleDialect
from light_scheduler.wire.native import NATIVE

from .claims import COLUMNS as CLAIMS
from .claims import NOTHING, claim_of_command
from .evidence import SCHEMA, asked_of, batch_of, encode_asked, kafka_rows
from .lines import told
from .messages import seen
from .owners import OtherDialects
from .plain_commands import read_plain
from .promises import Refused
from .standing import rate_of

COLUMNS = f"{SCHEMA}, asks string, interval bigint, start bigint, prefix string, target string"
"""Rows of evidence, and what questions without an engine need: which command it is, the interval and the start of a
fixed rate (ms, without jitter), what the ids of a bulk command begin with, and the topic of a firing in history.
"""

ROWS = f"{COLUMNS}, {CLAIMS}"
"""The same, with what records of plain one-shots claim."""


@dataclass(frozen=True)
class Reading:
    """How the records of some topics are read. Commands have dialects by topic, and limits; messages those dialects."""

    what: Literal["commands", "history", "messages"]
    dialects: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = NO_LIMITS

    def encode(self) -> str:
        """Return it as an option of a source."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> Reading:
        """Read an option of a source."""
        return msgspec.json.decode(text, type=cls)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the evidence, columns ROWS, of batches with Kafka's columns."""
        schema = arrow_schema(ROWS)
        for batch in batches:
            yield from self.rows(batch, schema)

    def rows(self, records: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the evidence of a batch with Kafka's columns; `schema` is that of ROWS."""
        records = _in_ms(records)
        if self.what == "history":
            yield told(records, schema)
        elif self.what == "messages":
            yield from seen(records, schema, OtherDialects.among(self.dialects))
        else:
            yield from self._asked(records, schema)

    def _asked(self, records: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        dialects = {topic: dialect_named(name) for topic, name in self.dialects.items()}
        native = [topic for topic, dialect in dialects.items() if dialect.name == NATIVE.name]
        plain, batch = read_plain(records, native, self.limits, schema)
        yield plain
        rows: list[tuple[Any, ...]] = []
        for record in kafka_rows(batch):
            dialect = dialects[record.topic]
            tenant, id, asked, origin = asked_of(record, dialect, self.limits)
            row = record._replace(tenant=tenant, id=id, lane=record.partition, key=origin)
            name = "refused" if isinstance(asked, Refused) else asked.name
            rate = rate_of(asked) or (None, None)
            claim = NOTHING if isinstance(dialect, CompatibleDialect) else claim_of_command(row, asked)
            known = (name, *rate, _prefix(asked), None, *claim)
            # The copy of a lane is younger than its command.
            row = row._replace(timestamp=asked.recorded_at, value=encode_asked(asked))
            rows.append((*row[:-1], None, *known))
        if rows:
            yield batch_of(rows, schema)


def _in_ms(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return Kafka's columns with `timestamp` as UTC epoch ms."""
    place = records.schema.names.index("timestamp")
    timestamps = records.column(place)
    if pa.types.is_timestamp(timestamps.type):
        instants = timestamps.cast(pa.timestamp("us", timestamps.type.tz)).cast(pa.int64())
        records = records.set_column(place, "timestamp", pc.divide(instants, 1_000))
    return records


def _prefix(asked: object) -> str | None:
    if not isinstance(asked, BulkCommand) or asked.selection is None:
        return None
    return asked.selection.id_prefix
