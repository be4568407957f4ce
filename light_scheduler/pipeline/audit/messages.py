"""Reads messages in target topics as evidence, in columns: all of a batch at once, where their headers are the usual.

Records that do not come from the scheduler are left out, and dead letters that were sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.firing import LAST_HEADERS
from light_scheduler.wire.redrive import REDRIVEN_FROM

from .canonical import headers_digests, joined
from .claims import Claim, Parts, digests
from .evidence import SEEN, Row, batch_of, kafka_rows, payload_digest, traced_row
from .header_lists import HeaderLists, Mask, mask_of
from .owners import ID, LANE, NO_OTHERS, TENANT, OtherDialects, native_owner, text
from .traced import CREATE_TIME

Columns = tuple[pa.Array, pa.Array, pa.Array]
"""Those of `Claim`."""

_INSTANT = "^[1-9][0-9]{12}$"
_USUAL_LANE = "^[0-9]{1,9}$"


class Messages(NamedTuple):
    """Evidence of messages, their headers, and the values of as many of the last ones as the scheduler writes, by name.

    Those that say whose a message is have their usual names.
    """

    rows: pa.RecordBatch
    lists: HeaderLists
    last: dict[str, pa.Array]

    def has(self, header: str, value: pa.Array | bytes) -> Mask:
        """Tell which have a header of a value."""
        return mask_of(pc.equal(self.last[header], value))

    @property
    def of_users(self) -> Mask:
        """Tell which of all headers come before the last ones."""
        begins = self.lists.ends - len(LAST_HEADERS)
        is_before: Mask = np.arange(len(self.lists.codes)) < begins[self.lists.owners]
        return is_before


def _has_names(of: Messages) -> Mask:
    has_names: Mask = np.ones(of.rows.num_rows, np.bool_)
    for place, name in enumerate(LAST_HEADERS, -len(LAST_HEADERS)):
        has_names &= of.lists.named(CONTROL_PREFIX + name, of.lists.ends + place)
    return has_names


def _has_no_more(of: Messages) -> Mask:
    ours = of.lists.owners[of.lists.beginning_with(CONTROL_PREFIX) & of.of_users]
    has_none: Mask = np.bincount(ours, minlength=of.rows.num_rows) == 0
    return has_none


def _delivery_ids(of: Messages) -> pa.Array:
    topic, partition, offset = (of.last[name] for name in ("source-topic", "source-partition", "source-offset"))
    return joined(topic, b":", partition, b":", offset, b":1:1:", of.last["due"], b":1")


CHECKS: dict[str, Callable[[Messages], Mask]] = {
    "names": _has_names,
    "no more": _has_no_more,
    "firing-id": lambda of: of.has("firing-id", joined(of.last["id"], b"@", of.last["due"])),
    "sequence": lambda of: of.has("sequence", b"1"),
    "attempt": lambda of: of.has("attempt", b"1"),
    "version": lambda of: of.has("version", b"1"),
    "delivery-id": lambda of: of.has("delivery-id", _delivery_ids(of)),
}
"""All that makes a message that of a plain one-shot."""


def seen(records: pa.RecordBatch, schema: pa.Schema, others: OtherDialects = NO_OTHERS) -> Iterator[pa.RecordBatch]:
    """Yield the evidence of Kafka records, whose `timestamp` is ms; some may be in dialects of other schedulers."""
    lists = HeaderLists.of(records.column("headers"))
    redriven = lists.owners[lists.named(REDRIVEN_FROM) & mask_of(lists.values.is_valid())]
    is_first = np.bincount(redriven, minlength=len(lists.ends)) == 0
    is_usual, last = usual_headers(lists)
    usual = is_usual & is_first
    if not usual.all():
        yield from _one_by_one(records.filter(pa.array(is_first & ~is_usual)), schema, others)
        chosen = pa.array(usual)
        records, last = records.filter(chosen), {name: values.filter(chosen) for name, values in last.items()}
        lists = HeaderLists.of(records.column("headers"))
    of = Messages(_digested(records), lists, last)
    tenant, id, lane = (last[name].cast(pa.string()) for name in (TENANT, ID, LANE))
    yield _evidence(of.rows, {"tenant": tenant, "id": id, "lane": lane.cast(pa.int32())}, claims_of(of), schema)


def usual_headers(lists: HeaderLists) -> tuple[Mask, dict[str, pa.Array]]:
    """Tell which records say whose they are in the usual places, and return the values of the last headers, by name."""
    is_usual = lists.lengths >= len(LAST_HEADERS)
    begins = np.where(is_usual, lists.ends - len(LAST_HEADERS), 0)
    last = {
        name: lists.values.take(pa.array(begins + place, mask=~is_usual)) for place, name in enumerate(LAST_HEADERS)
    }
    for name in (TENANT, ID, LANE):
        (found,) = np.nonzero(is_usual)
        at = begins[found] + LAST_HEADERS.index(name)
        is_usual[found] = lists.named(CONTROL_PREFIX + name, at)
    is_usual &= _is_text(last[TENANT]) & _is_text(last[ID])
    return is_usual & mask_of(pc.match_substring_regex(last[LANE], _USUAL_LANE)), last


def claims_of(of: Messages) -> Columns:
    """Return what messages claim."""
    is_plain = np.ones(of.rows.num_rows, np.bool_)
    for name in ("due", "fired-at"):
        is_plain &= mask_of(pc.match_substring_regex(of.last[name], _INSTANT))
    for holds in CHECKS.values():
        is_plain &= holds(of)
    source, partition, offset = (of.last[name] for name in ("source-topic", "source-partition", "source-offset"))
    headers, topic = headers_digests(of.lists, of.of_users), of.rows.column("topic").cast(pa.binary())
    parts = Parts(of.rows.column("value"), headers, topic, source, partition, offset, of.rows.column("key"))
    instants = {name: _where(is_plain, of.last[name]).cast(pa.string()) for name in ("due", "fired-at")}
    due, fired_at = (texts.cast(pa.int64()) for texts in instants.values())
    return _where(is_plain, digests(parts)), due, fired_at


def _is_text(column: pa.Array) -> Mask:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return np.array([text(value) is not None for value in column.to_pylist()], np.bool_)
    return mask_of(column.is_valid())


def _where(condition: Mask, values: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(condition), values, pa.scalar(None, values.type))


def _digested(records: pa.RecordBatch) -> pa.RecordBatch:
    payloads = pa.array(map(payload_digest, records.column("value").to_pylist()), pa.binary())
    return records.set_column(records.schema.names.index("value"), "value", payloads)


def _evidence(rows: pa.RecordBatch, whose: dict[str, pa.Array], claims: Columns, schema: pa.Schema) -> pa.RecordBatch:
    number = rows.num_rows
    given = {
        **{name: rows.column(name) for name in rows.schema.names},
        **whose,
        "kind": pa.repeat(SEEN, number),
        **dict(zip(Claim._fields, claims, strict=True)),
    }
    columns = [given.get(field.name, pa.nulls(number, field.type)).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _one_by_one(records: pa.RecordBatch, schema: pa.Schema, others: OtherDialects) -> Iterator[pa.RecordBatch]:
    """Yield the evidence of messages whose headers are not the usual: first of ours, then of other dialects."""
    owners: list[tuple[str, str, int] | None] = []
    traced: list[Row] = []
    for row, type in zip(kafka_rows(records), records.column("timestampType").to_pylist(), strict=True):
        owner = others.owner(row.key, row.value, row.headers) if others else None
        if owner is not None:
            traced.append(traced_row(row, owner, by_sender=type == CREATE_TIME))
        owners.append(None if owner is not None else native_owner(row.headers))
    is_ours = pa.array([owner is not None for owner in owners], pa.bool_())
    found = list(filter(None, owners))
    types = (pa.string(), pa.string(), pa.int32())
    columns = [pa.array([owner[place] for owner in found], type) for place, type in enumerate(types)]
    rows = _digested(records.filter(is_ours))
    whose = dict(zip(("tenant", "id", "lane"), columns, strict=True))
    nothing = pa.nulls(rows.num_rows, pa.binary()), *(pa.nulls(rows.num_rows, pa.int64()) for _ in range(2))
    yield _evidence(rows, whose, nothing, schema)
    if traced:
        rest = (None,) * (len(schema) - len(Row._fields))
        yield batch_of([(*row, *rest) for row in traced], schema)
