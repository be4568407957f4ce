"""Reads commands for plain one-shots as columns: all of a batch at once, where other commands are read one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.engine import Limits
from light_scheduler.model import DEFAULT_TENANT
from light_scheduler.wire.build import ANY
from light_scheduler.wire.content_type import CONTENT_TYPE, is_json_command
from light_scheduler.wire.fields import CONTROL_PREFIX, RULES, parse_tenant, parse_topic
from light_scheduler.wire.native import header_name

from .canonical import PlainCommands, after_delays, at_instants, digits, headers_digests, packed
from .claims import Claim, Parts, digests
from .evidence import COMMAND, payload_digest
from .header_lists import HeaderLists, Mask, Numbers, each_value, mask_of

_INSTANT = "^[1-9][0-9]{12}$"
"""The usual form of an instant: ms of the years 2001 to 2286."""

_ID = "^[ -~]+$"
"""An id of printable ASCII."""

_FIELDS = ("at", "after", "target-topic", "id", "tenant")
_NOWHERE = -1


class _Read(NamedTuple):
    """Commands of a batch: `rows` of it, their tenants and ids, the values of their rows of evidence, and claims."""

    rows: Numbers
    tenants: pa.Array
    ids: pa.Array
    values: pa.Array
    claims: tuple[pa.Array, pa.Array, pa.Array]


def read_plain(
    batch: pa.RecordBatch, topics: Collection[str], limits: Limits, schema: pa.Schema
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the evidence of commands for plain one-shots, and the records of a batch that are to be read otherwise.

    Only commands on `topics`, which are of the native dialect, are looked at. The evidence is what `asked_of` makes of
    these records.
    """
    read = _read(batch, topics, limits)
    others = np.ones(batch.num_rows, np.bool_)
    others[read.rows] = False
    records = batch.select(["topic", "partition", "offset", "timestamp"]).take(pa.array(read.rows))
    given = {
        "tenant": read.tenants.cast(pa.string()),
        "id": read.ids.cast(pa.string()),
        "lane": records.column("partition"),
        "kind": pa.repeat(COMMAND, len(read.rows)),
        **{name: records.column(name) for name in records.schema.names},
        "value": read.values,
        "asks": pa.repeat("schedule", len(read.rows)),
        **dict(zip(Claim._fields, read.claims, strict=True)),
    }
    columns = [given.get(field.name, pa.nulls(len(read.rows), field.type)).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema), batch.filter(pa.array(others))


def _read(batch: pa.RecordBatch, topics: Collection[str], limits: Limits) -> _Read:
    lists = HeaderLists.of(batch.column("headers"))
    ours = lists.beginning_with(CONTROL_PREFIX)
    is_plain, places = _with_plain_headers(lists, ours)
    is_plain &= mask_of(pc.is_in(batch.column("topic"), pa.array(sorted(topics), pa.string())))
    is_plain &= mask_of(pc.less_equal(pc.binary_length(batch.column("value")), limits.max_payload_bytes))
    is_plain &= mask_of(batch.column("key").is_valid())
    (rows,) = np.nonzero(is_plain)
    at, after, topic, id, tenant = (_taken(lists.values, places[field][rows]) for field in _FIELDS)
    id = _chosen(places["id"][rows] != _NOWHERE, id, batch.column("key").take(pa.array(rows)))
    default = pa.repeat(pa.scalar(DEFAULT_TENANT.encode(), pa.binary()), len(rows))
    tenant = _chosen(places["tenant"][rows] != _NOWHERE, tenant, default)
    delay = each_value(after, _delay, pa.int64())
    is_good = (
        (mask_of(pc.match_substring_regex(at, _INSTANT)) | mask_of(delay.is_valid()))
        & mask_of(each_value(topic, partial(_is_legal, _parse_target(limits)), pa.bool_()))
        & mask_of(each_value(tenant, partial(_is_legal, parse_tenant), pa.bool_()))
        & mask_of(pc.match_substring_regex(id, _ID))
        & ~mask_of(pc.ends_with(id, ANY))
        & mask_of(pc.less_equal(pc.binary_length(id), limits.max_id_bytes))
    )
    at, delay, topic, id, tenant = (column.filter(pa.array(is_good)) for column in (at, delay, topic, id, tenant))
    rows = rows[is_good]
    records = batch.drop_columns(["headers"]).take(pa.array(rows))
    due = at.cast(pa.string()).cast(pa.int64())
    commands = PlainCommands(
        tenant,
        id,
        key=records.column("key"),
        timing=pc.coalesce(at_instants(due), after_delays(delay)),
        topic=topic,
        payload=pa.array(map(payload_digest, records.column("value").to_pylist()), pa.binary()),
        headers=headers_digests(lists, ~ours).take(pa.array(rows)),
        partition=records.column("partition"),
        offset=records.column("offset"),
        recorded_at=records.column("timestamp"),
    )
    place = records.column("topic").cast(pa.binary()), digits(commands.partition), digits(commands.offset)
    claims = digests(Parts(commands.payload, commands.headers, topic, *place, commands.key))
    return _Read(rows, tenant, id, packed(commands), (claims, due, delay))


def _with_plain_headers(lists: HeaderLists, ours: Mask) -> tuple[Mask, dict[str, Numbers]]:
    """Tell which records have a target, and an instant or a delay, and no header of ours but these, an id and a tenant.

    Also return, by field, the place of each record's header among all, or _NOWHERE.
    """
    owners, count = lists.owners, len(lists.ends)
    is_plain = ~_is_json(lists, count)
    known = np.zeros(count, np.int64)
    places: dict[str, Numbers] = {}
    for field in _FIELDS:
        (found,) = np.nonzero(lists.named(header_name(field)))
        places[field] = np.full(count, _NOWHERE)
        places[field][owners[found]] = found
        times = np.bincount(owners[found], minlength=count)
        is_plain &= times <= 1
        known += times
    is_plain &= places["target-topic"] != _NOWHERE
    is_plain &= (places["at"] != _NOWHERE) ^ (places["after"] != _NOWHERE)
    is_plain &= np.bincount(owners[ours], minlength=count) == known
    return is_plain, places


def _is_json(lists: HeaderLists, count: int) -> Mask:
    typed = lists.named(CONTENT_TYPE)
    json = each_value(lists.values.filter(pa.array(typed)), is_json_command, pa.bool_())
    return np.bincount(lists.owners[typed][mask_of(json)], minlength=count) > 0


def _taken(values: pa.Array, places: Numbers) -> pa.Array:
    return values.take(pa.array(places, mask=places == _NOWHERE))


def _chosen(condition: Mask, values: pa.Array, others: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(condition), values, others)


def _delay(text: bytes) -> int | None:
    try:
        delay: int = RULES["after"].parse(text.decode())
    except ValueError:  # UnicodeDecodeError is one
        return None
    return delay


def _parse_target(limits: Limits) -> Callable[[str], object]:
    def parse(text: str) -> str:
        if not limits.may_aim_at(topic := parse_topic(text)):
            raise ValueError(f"{topic} takes no firings")
        return topic

    return parse


def _is_legal(parse: Callable[[str], object], value: bytes) -> bool:
    try:
        parse(value.decode())
    except ValueError:  # UnicodeDecodeError is one
        return False
    return True
