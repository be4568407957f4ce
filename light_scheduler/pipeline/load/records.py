"""Rows to command records, each held to the rules that a worker will hold it to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import pyarrow as pa

from light_scheduler.engine.commands import decide
from light_scheduler.engine.limits import Limits
from light_scheduler.engine.plain import plain_entry
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Headers
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.ids import derived_id
from light_scheduler.wire.native import NATIVE, header_name
from light_scheduler.wire.rhythm import TRIGGERS

from .columns import Cell, Column, good, read_rows

_ID = header_name("id")
_SCHEDULE = (header_name("command"), b"schedule")
_TRIGGERS = {header_name(field) for field in TRIGGERS}


class Record(NamedTuple):
    """A command record before it has a place in a log; `timestamp` is UTC epoch ms."""

    key: bytes
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int


class Refusal(NamedTuple):
    """Why a row is not a command: the column at fault, and what is wrong with it."""

    field: str
    reason: str


@dataclass(frozen=True)
class RecordMaker:
    """Makes records of rows. `constants` has the texts of fields that are the same in all rows."""

    columns: tuple[Column, ...]
    constants: Mapping[str, str]
    limits: Limits

    def make(self, batch: pa.RecordBatch, now: int) -> Iterator[Record | Refusal]:
        """Yield what each row of a batch comes to, were it decided at an instant (UTC epoch ms)."""
        rows = read_rows(batch, self.columns)
        names = [name for name, _ in rows.fields]
        cells = zip(*(cells for _, cells in rows.fields), strict=True) if names else iter([()] * batch.num_rows)
        common = [(header_name(field), text.encode()) for field, text in self.constants.items()]
        for key, payload, user, fields in zip(rows.keys, rows.payloads, rows.headers, cells, strict=True):
            control = common + [pair for pair in zip(names, fields, strict=True) if pair[1] is not None]
            try:
                record = _record(key, payload, user, control, now)
                short = _without_id(record)
                if plain_entry(short, now, self.limits) is not None:
                    record = short
                else:
                    decide(NATIVE.decode(record), None, now, self.limits)
            except InvalidCommand as error:
                yield Refusal(error.field.removeprefix(CONTROL_PREFIX), error.reason)
            else:
                yield record


def _record(
    key: Cell, payload: Cell, user: Headers | InvalidCommand, control: list[tuple[str, Cell]], now: int
) -> Record:
    """Put a record together. Raises InvalidCommand if one of its parts could not be read."""
    headers: Headers = [(name, good(cell)) for name, cell in control]
    own, value, key = good(user), good(payload), good(key)
    if value is None and _TRIGGERS.isdisjoint(name for name, _ in headers):
        headers.append(_SCHEDULE)  # a null without a trigger would be a cancel
    if key is None:
        key = dict(headers).get(_ID) or _id_of(value, headers, own)
    return Record(key, value, headers + own, 0, 0, now)


def _without_id(record: Record) -> Record:
    """Leave out an id that the key stands for anyway: workers are twice as fast with what is plain."""
    spoken_for = _ID, record.key
    if spoken_for not in record.headers:
        return record
    return record._replace(headers=[header for header in record.headers if header != spoken_for])


def _id_of(payload: bytes | None, headers: Headers, user: Headers) -> bytes:
    """Return what names a row that has neither id nor key: the same for the same content."""
    content = msgspec.msgpack.encode([payload, sorted(headers), user])
    return derived_id(content).encode()
