"""Converts rows to command records, checked with the rules of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import pyarrow as pa

from light_scheduler.engine.commands import decide
from light_scheduler.engine.limits import Limits
from light_scheduler.engine.plain import plain_id
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Headers, Once
from light_scheduler.wire.build import TargetMissing
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.ids import derived_id
from light_scheduler.wire.named_fields import in_names
from light_scheduler.wire.native import NATIVE, header_name
from light_scheduler.wire.time_rule import TRIGGERS

from .columns import Cell, Column, Rows, good, read_rows

_ID, _TENANT = header_name("id"), header_name("tenant")
_AFTER = header_name("after")
_SCHEDULE = (header_name("command"), b"schedule")
_TRIGGERS = {header_name(field) for field in TRIGGERS}
_UNKNOWN_DEFAULT = "is required: a load does not know the default targets of tenants"


class Record(NamedTuple):
    """A command record that has not been written yet; `timestamp` is UTC epoch ms."""

    key: bytes
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int


class Refusal(NamedTuple):
    """Why a row is not sent: the invalid column, and the reason. `held`: it may have been sent before."""

    field: str
    reason: str
    held: bool = False


_PASSED = (
    "its time has passed, and it may have been delivered, because another state of its file or table was loaded, or an "
    "earlier load refused it, and its table of refused rows was loaded: to send it all the same, use --send-past"
)


@dataclass(frozen=True)
class RecordMaker:
    """Makes records of rows. `constants` has the texts of fields that are the same in all rows."""

    columns: tuple[Column, ...]
    constants: Mapping[str, str]
    limits: Limits

    def read(self, batch: pa.RecordBatch) -> Rows:
        """Return the rows of a batch, as input for `make`."""
        return read_rows(batch, self.columns)

    def make(self, rows: Rows, now: int, *, holds_past: bool = False) -> Iterator[Record | Refusal]:
        """Yield the outcome of each row, as decided at an instant (UTC epoch ms).

        With `holds_past`, one-shots that are due by then are refused, and so are all with a relative time.
        """
        timeless = self._refusal_without_time
        for key, payload, user, control in self._parts(rows):
            if timeless is not None and _TRIGGERS.isdisjoint(name for name, _ in control):
                yield timeless
                continue
            try:
                record, due = self._decided(_record(key, payload, user, control, now), now)
            except InvalidCommand as error:
                yield Refusal(error.field.removeprefix(CONTROL_PREFIX), in_names(error.reason, str))
                continue
            passed = _passed(control, due, now) if holds_past else None
            yield record if passed is None else Refusal(passed, _PASSED, held=True)

    def owners(self, rows: Rows) -> Iterator[tuple[bytes | None, bytes, bytes]]:
        """Yield the tenant (None: the default), the id and the key of each row's schedule.

        The rest of a row matters only if it has neither id nor key: then it determines the id. Rows without valid names
        are left out.
        """
        for key, payload, user, control in self._parts(rows):
            with suppress(InvalidCommand):
                named = {name: good(cell) for name, cell in control if name in (_TENANT, _ID)}
                own_key = good(key)
                id = named.get(_ID) or own_key or _record(key, payload, user, control, 0).key
                yield named.get(_TENANT), id, own_key or id

    def _parts(self, rows: Rows) -> Iterator[tuple[Cell, Cell, Headers | InvalidCommand, list[tuple[str, Cell]]]]:
        """Yield key, payload, user's headers and control headers of each row."""
        names = [name for name, _ in rows.fields]
        cells = zip(*(cells for _, cells in rows.fields), strict=True) if names else iter([()] * len(rows.keys))
        common = [(header_name(field), text.encode()) for field, text in self.constants.items()]
        for key, payload, user, fields in zip(rows.keys, rows.payloads, rows.headers, cells, strict=True):
            yield key, payload, user, common + [pair for pair in zip(names, fields, strict=True) if pair[1] is not None]

    def _decided(self, record: Record, now: int) -> tuple[Record, int | None]:
        """Return a record in the form that is sent, and its due time if it is a one-shot. Raises InvalidCommand."""
        short = _without_id(record)
        plain = NATIVE.plain(short)
        if plain is not None and plain_id(short, plain, self.limits) is not None:
            return short, plain[0]
        try:
            command = NATIVE.decode(record)
        except TargetMissing as error:
            raise InvalidCommand(error.field, _UNKNOWN_DEFAULT) from None
        entry = decide(command, None, now, self.limits).entry
        is_one_shot = entry is not None and isinstance(entry.schedule.trigger, Once)
        return record, entry.progress.due if entry is not None and is_one_shot else None

    @cached_property
    def _refusal_without_time(self) -> Refusal | None:
        """The refusal of a row without a time, if the table has columns for it; None: rows without a time are for
        now."""
        times = [column.meaning for column in self.columns if column.meaning in TRIGGERS]
        if not times or not TRIGGERS.isdisjoint(self.constants):
            return None
        which = f"{', '.join(times)} are all null" if len(times) > 1 else "is null"
        return Refusal(times[0], f"{which}: give a time, or `after` 0 to deliver at once")


def _passed(control: list[tuple[str, Cell]], due: int | None, now: int) -> str | None:
    """Return the time column of a one-shot that may have been delivered if it was sent before; None: it was not."""
    if due is None:
        return None
    if any(name == _AFTER for name, _ in control):
        return "after"
    return "at" if due <= now else None


def identity_digest(record: Record) -> int:
    """Return an 8-byte number that identifies the tenant and id of a record."""
    headers = dict(record.headers)
    tenant = headers.get(_TENANT) or DEFAULT_TENANT.encode()
    whose = tenant + b"\0" + (headers.get(_ID) or record.key)
    return int.from_bytes(blake2b(whose, digest_size=8).digest(), "big", signed=True)


def _record(
    key: Cell, payload: Cell, user: Headers | InvalidCommand, control: list[tuple[str, Cell]], now: int
) -> Record:
    """Build a record. Raises InvalidCommand if one of its parts could not be read."""
    headers: Headers = [(name, good(cell)) for name, cell in control]
    own, value, key = good(user), good(payload), good(key)
    if value is None and _TRIGGERS.isdisjoint(name for name, _ in headers):
        headers.append(_SCHEDULE)  # a null without a trigger would be a cancel
    if key is None:
        key = dict(headers).get(_ID) or _id_of(value, headers, own)
    return Record(key, value, headers + own, 0, 0, now)


def _without_id(record: Record) -> Record:
    """Remove an id that equals the key: workers are twice as fast with plain commands."""
    spoken_for = _ID, record.key
    if spoken_for not in record.headers:
        return record
    return record._replace(headers=[header for header in record.headers if header != spoken_for])


def _id_of(payload: bytes | None, headers: Headers, user: Headers) -> bytes:
    """Return the id of a row with neither id nor key: the same for the same content."""
    content = msgspec.msgpack.encode([payload, sorted(headers), user])
    return derived_id(content).encode()
