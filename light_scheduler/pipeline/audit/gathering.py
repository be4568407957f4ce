"""Evidence as tables: what topics hold, in the one form that a schedule is judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.engine import Limits
from light_scheduler.model import BulkCommand
from light_scheduler.pipeline.adoption import adopted
from light_scheduler.pipeline.schemas import HEADERS_TYPE, arrow_schema, spark_types
from light_scheduler.wire import dialect_named
from light_scheduler.wire.events import DEAD_LETTER_PREFIX
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.firing import LAST_HEADERS as FIRING_HEADERS
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.redrive import REDRIVEN, REDRIVEN_FROM
from light_scheduler.wire.state import decode_entry

from .evidence import DEAD_LETTER, HISTORY, SEEN, asked_of, encode_asked, imported_row, kafka_rows
from .evidence import SCHEMA as EVIDENCE
from .plain_commands import read_plain
from .promises import Refused
from .standing import rate_of

IMPORT = "import"
"""Stands in for the command of an imported schedule."""

CARRIED = "carried"
"""Stands in for the command of a schedule left pending by the previous audit; starts at the next time of its series."""

COLUMNS = f"{EVIDENCE}, asks string, interval bigint, start bigint, prefix string, target string"
"""Rows of evidence, and what questions without an engine need: which command it is, the interval and the start of a
fixed rate (ms, without jitter), what the ids of a bulk command begin with, and the topic of a firing in history.
"""

OF_COMMANDS = tuple(name for name in spark_types(COLUMNS) if name not in ("headers", "target"))
"""The columns in which rows of commands differ."""

OF_HISTORY = ("tenant", "id", "lane", "topic", "partition", "offset", "timestamp", "value", "target")
"""The columns in which rows of history differ."""

_EVENT = "event string, version int, tenant string, id string, partition int, target_topic string, reason string"


def commands(records: DataFrame, dialects: Mapping[str, str], limits: Limits) -> DataFrame:
    """Return the evidence of commands; `dialects` are those of their topics."""
    in_ms = records.withColumn("timestamp", F.unix_millis("timestamp"))
    return in_ms.mapInArrow(_decoding(dict(dialects), limits), COLUMNS)


def imported(table: DataFrame, commands_topics: Mapping[str, str], topics: Mapping[str, str]) -> DataFrame:
    """Return the evidence of schedules that were imported from a table that `export` wrote.

    `commands_topics` has the commands topic that the schedules of each one of the table went to, `topics` new names of
    targets.
    """
    schema = arrow_schema(COLUMNS)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("commands_topic", "partition", "record"))
            yield _batch(
                [
                    (
                        *imported_row(adopted(decode_entry(record), topics), commands_topics[source], partition),
                        *(IMPORT, None, None, None, None),
                    )
                    for source, partition, record in zip(*columns, strict=True)
                ],
                schema,
            )

    return table.select("commands_topic", "partition", "record").mapInArrow(rows, COLUMNS)


def for_many(commands: DataFrame, carried: DataFrame | None = None) -> DataFrame:
    """Return bulk commands as evidence of each schedule that they may be for, of those `carried` over too."""
    many = commands.where("prefix is not null").drop("id")
    asking = commands if carried is None else commands.unionByName(carried)
    schedules = asking.where(F.col("asks").isin("schedule", IMPORT, CARRIED)).select("tenant", "id", "lane").distinct()
    concerned = schedules.join(F.broadcast(many), ["tenant", "lane"]).where(F.col("id").startswith(F.col("prefix")))
    return concerned.select(*commands.columns)


def history(records: DataFrame) -> DataFrame:
    """Return the evidence of history. Records that are none are left out, and the totals of bulk commands."""
    # From a generator: Spark would parse a line once for each member of any other column.
    event = F.explode(F.array(F.from_json(F.col("value").cast("string"), _EVENT)))
    table = records.select("*", event.alias("event")).where("event.tenant is not null")
    table = table.where("event.version is not null or event.event in ('rejected', 'moved')")
    # What somebody sends again by hand is no decision of the scheduler's.
    table = table.where(~F.coalesce(F.col("event.reason"), F.lit("")).startswith(REDRIVEN))
    return table.select(
        *_owner(F.col("event.tenant"), F.col("event.id"), F.col("event.partition"), HISTORY),
        *_record(F.lit(None), F.col("value"), F.lit(None)),
        *_nothing("asks", "interval", "start", "prefix"),
        F.when(F.col("event.event") == "fired", F.col("event.target_topic")).alias("target"),
    )


def widened(table: DataFrame, kind: int | None = None) -> DataFrame:
    """Return rows of evidence with the columns that all of them have alike: null, and the kind if it is given.

    Spark does without a part of a plan if such a column says that it has no rows.
    """
    given = {} if kind is None else {"kind": F.lit(kind)}
    there = {**{name: F.col(name) for name in table.columns}, **given}
    columns = ((there.get(name, F.lit(None)), name, type) for name, type in spark_types(COLUMNS).items())
    return table.select(*(column.cast(type).alias(name) for column, name, type in columns))


def firings(records: DataFrame) -> DataFrame:
    """Return the evidence of target topics. Records that do not come from the scheduler are left out, and dead
    letters that were sent again."""
    tenant, id, lane = (_firing_header(name) for name in ("tenant", "id", "source-partition"))
    lane = lane.try_cast("int")
    meant = tenant.isNotNull() & id.isNotNull() & lane.isNotNull() & _header(REDRIVEN_FROM).isNull()
    return records.where(meant).select(
        *_owner(tenant, id, lane, SEEN),
        *_record(F.col("key"), F.sha2("value", 256).cast("binary"), F.col("headers")),
        *_nothing("asks", "interval", "start", "prefix", "target"),
    )


def dead_letters(records: DataFrame) -> DataFrame:
    """Return the evidence of dead letters."""
    tenant, id = _header(DEAD_LETTER_PREFIX + "tenant"), _header(DEAD_LETTER_PREFIX + "id")
    lane = _header(DEAD_LETTER_PREFIX + "source-partition").try_cast("int")
    return records.where(tenant.isNotNull() & lane.isNotNull()).select(
        *_owner(tenant, id, lane, DEAD_LETTER),
        *_record(F.lit(None), F.lit(None), F.col("headers")),
        *_nothing("asks", "interval", "start", "prefix", "target"),
    )


def _owner(tenant: Column, id: Column, lane: Column, kind: int) -> list[Column]:
    whose = tenant.alias("tenant"), F.coalesce(id, F.lit("")).alias("id"), lane.alias("lane")
    return [*whose, F.lit(kind).alias("kind")]


def _record(key: Column, value: Column, headers: Column) -> list[Column]:
    return [
        *map(F.col, ("topic", "partition", "offset")),
        F.unix_millis("timestamp").alias("timestamp"),
        key.cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        headers.cast(HEADERS_TYPE).alias("headers"),
    ]


def _nothing(*names: str) -> list[Column]:
    types = spark_types(COLUMNS)
    return [F.lit(None).cast(types[name]).alias(name) for name in names]


def _header(name: str) -> Column:
    """Return the last header of a name as text."""
    named = F.filter("headers", lambda header: (header["key"] == name) & header["value"].isNotNull())
    return F.try_element_at(named, F.lit(-1))["value"].cast("string")


def _firing_header(name: str) -> Column:
    """Return the last header of a name as text, of a firing: most have it where lanes write it."""
    last = [F.try_element_at("headers", F.lit(place - len(FIRING_HEADERS))) for place in range(len(FIRING_HEADERS))]
    named = zip(last, FIRING_HEADERS, strict=True)
    is_usual = reduce(Column.__and__, (header["key"] == CONTROL_PREFIX + name for header, name in named))
    value = last[FIRING_HEADERS.index(name)]["value"]
    return F.when(is_usual & value.isNotNull(), value.cast("string")).otherwise(_header(CONTROL_PREFIX + name))


def _decoding(
    dialects: dict[str, str], limits: Limits
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = arrow_schema(COLUMNS)

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = {topic: dialect_named(dialect) for topic, dialect in dialects.items()}
        native = [topic for topic, dialect in named.items() if dialect.name == NATIVE.name]
        for records in batches:
            plain, batch = read_plain(records, native, limits, schema)
            yield plain
            rows: list[tuple[Any, ...]] = []
            for record in kafka_rows(batch):
                tenant, id, asked, origin = asked_of(record, named[record.topic], limits)
                place = record.topic, record.partition, record.offset, record.timestamp
                name = "refused" if isinstance(asked, Refused) else asked.name
                whose = tenant, id, record.partition, record.kind
                rows.append(
                    (
                        *whose,
                        *place,
                        origin,
                        encode_asked(asked),
                        None,
                        name,
                        *(rate_of(asked) or (None, None)),
                        _prefix(asked),
                        None,
                    )
                )
            yield _batch(rows, schema)

    return decode


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _prefix(asked: object) -> str | None:
    if not isinstance(asked, BulkCommand) or asked.selection is None:
        return None
    return asked.selection.id_prefix
