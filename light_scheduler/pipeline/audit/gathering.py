"""Evidence as tables: what topics hold, in the one form that a schedule is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Entry, EventType
from light_scheduler.pipeline.import_decisions import Destination, adopted, place_in
from light_scheduler.pipeline.schemas import HEADERS_TYPE, arrow_schema, spark_types
from light_scheduler.wire.build import ANY
from light_scheduler.wire.events import DEAD_LETTER_PREFIX
from light_scheduler.wire.state import decode_entry

from .claims import CHANGED
from .evidence import DEAD_LETTER, batch_of, imported_row
from .owners import OtherDialects
from .readings import COLUMNS as COLUMNS
from .readings import ROWS

IMPORT = "import"
"""Stands in for the command of an imported schedule."""

CARRIED = "carried"
"""Stands in for the command of a schedule left pending by the previous audit; starts at the next time of its series."""

OF_COMMANDS = tuple(name for name in spark_types(ROWS) if name not in ("headers", "target"))
"""The columns in which rows of commands differ."""

OF_HISTORY = (
    *("tenant", "id", "lane", "topic", "partition", "offset", "timestamp", "value", "target"),
    *("claim", "due", "at"),
)
"""The columns in which rows of history differ."""

_PLACE = ("topic", "partition", "offset")

_OF_COMMANDS_ALONE = (EventType.REJECTED.value, EventType.MOVED.value)
"""Events that tell of a command, and not that there is a schedule."""


def imported(
    table: DataFrame,
    commands_topics: Mapping[str, str],
    topics: Mapping[str, str],
    partitions: Mapping[str, int | None],
    others: OtherDialects,
) -> DataFrame:
    """Return the evidence of schedules that were imported from a table that `export` wrote.

    `commands_topics` has the commands topic that the schedules of each one of the table went to, `topics` new names of
    targets, and `partitions` how many those commands topics have; None: as many as those of the table. The import put
    schedules elsewhere if the topic has grown since (see `where_told`). `others` have dialects of other schedulers.
    """
    schema = arrow_schema(COLUMNS)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch_of([row(*each) for each in zip(*(column.to_pylist() for column in batch), strict=True)], schema)

    def row(source: str, partition: int, of: int, record: bytes) -> tuple[Any, ...]:
        entry, topic = adopted(decode_entry(record), topics), commands_topics[source]
        lane = imported_lane(entry, partition, of, partitions[topic] or of)
        is_of_another = others.of(topic) is not None
        return (*imported_row(entry, topic, lane, is_of_another=is_of_another), IMPORT, None, None, None, None)

    return table.select("commands_topic", "partition", "partitions", "record").mapInArrow(rows, COLUMNS)


def imported_lane(entry: Entry, partition: int, of: int, partitions: int) -> int:
    """Return the lane of a schedule that was exported from `partition` of `of`, in a topic of so many `partitions`.

    One without its key was imported into as many as it came from, and stays where it is whatever is added.
    """
    try:
        return place_in(Destination("", partitions), entry, partition, of)
    except InvalidCommand:
        return partition


def where_told(imported: DataFrame, history: DataFrame) -> DataFrame:
    """Return the evidence of imported schedules, those in the lane that history tells of which had another one then.

    That is where it begins with anything but a command that schedules them, if it tells of no other lane. `history` is
    evidence, too. An id that was imported several times stays as it is: nobody can tell which one was where.
    """
    whose = ["tenant", "id"]
    event = F.get_json_object(F.col("value").cast("string"), "$.event")
    once = imported.groupBy(*whose).agg(F.count("*").alias("number")).where(F.col("number") == 1).select(*whose)
    lines = history.join(once, whose, "left_semi").select(*whose, "lane", "offset", event.alias("event"))
    first = lines.where(~F.col("event").isin(*_OF_COMMANDS_ALONE)).groupBy(*whose, "lane")
    lanes = first.agg(F.min_by("event", "offset").alias("first")).groupBy(*whose)
    begins = F.when(F.col("first") != EventType.SCHEDULED.value, F.col("lane"))
    told = lanes.agg(F.collect_set("lane").alias("told"), F.collect_set(begins).alias("begun"))
    is_elsewhere = ~F.array_contains("told", F.col("lane")) & (F.size("begun") == 1)
    lane = F.when(is_elsewhere, F.get("begun", F.lit(0))).otherwise(F.col("lane"))
    placed = imported.join(told, whose, "left").withColumn("lane", lane).withColumn("partition", F.col("lane"))
    return placed.select(*imported.columns)


def is_change() -> Column:
    """Tell whether a row of history is about a change, and not about a schedule."""
    return F.coalesce(F.substring("claim", 1, len(CHANGED)) == F.lit(CHANGED), F.lit(False))


def targets_and_changes(history: DataFrame) -> DataFrame:
    """Return each target that history names, and each change that it tells, with what it claims and its place."""
    of_change = (F.when(is_change(), F.col(name)).alias(name) for name in ("tenant", "claim", "at", *_PLACE))
    return history.where(F.col("target").isNotNull() | is_change()).select("target", *of_change).distinct()


def for_many(commands: DataFrame, schedules: DataFrame) -> DataFrame:
    """Return bulk commands as evidence of each of the `schedules` that they may be for."""
    many = commands.where("prefix is not null").drop("id")
    return _concerned(schedules, many, "topic").select(*commands.columns)


def letters_for_many(letters: DataFrame, schedules: DataFrame) -> DataFrame:
    """Return the dead letters of bulk commands as evidence of each of the `schedules` that they may be for."""
    is_for_many = F.col("id").endswith(ANY)
    prefix, source = F.expr(f"left(id, length(id) - {len(ANY)})"), _header(DEAD_LETTER_PREFIX + "source-topic")
    many = letters.where(is_for_many).withColumns({"prefix": prefix, "source": source}).drop("id")
    return _concerned(schedules.withColumnRenamed("topic", "source"), many, "source").select(*letters.columns)


def schedules_of(commands: DataFrame, carried: DataFrame | None = None) -> DataFrame:
    """Return the schedules that commands ask for, and those `carried` over: tenant, id, lane, and commands topic."""
    asking = commands if carried is None else commands.unionByName(carried, allowMissingColumns=True)
    asked = asking.where(F.col("asks").isin("schedule", IMPORT, CARRIED))
    return asked.select("tenant", "id", "lane", "topic").distinct()


def _concerned(schedules: DataFrame, many: DataFrame, commands_topic: str) -> DataFrame:
    """Return rows for many schedules, for each that their `prefix` begins the id of in their lane.

    `commands_topic` is the column with that of both.
    """
    joined = schedules.join(F.broadcast(many), ["tenant", "lane", commands_topic])
    return joined.where(F.col("id").startswith(F.col("prefix")))


def widened(table: DataFrame, kind: int | None = None) -> DataFrame:
    """Return rows of evidence with the columns that all of them have alike: null, and the kind if it is given.

    Spark does without a part of a plan if such a column says that it has no rows.
    """
    given = {} if kind is None else {"kind": F.lit(kind)}
    there = {**{name: F.col(name) for name in table.columns}, **given}
    columns = ((there.get(name, F.lit(None)), name, type) for name, type in spark_types(ROWS).items())
    return table.select(*(column.cast(type).alias(name) for column, name, type in columns))


def dead_letters(records: DataFrame) -> DataFrame:
    """Return the evidence of dead letters."""
    tenant, id = _header(DEAD_LETTER_PREFIX + "tenant"), _header(DEAD_LETTER_PREFIX + "id")
    lane = _header(DEAD_LETTER_PREFIX + "source-partition").try_cast("int")
    whose = tenant.alias("tenant"), F.coalesce(id, F.lit("")).alias("id"), lane.alias("lane")
    at = F.unix_millis("timestamp").alias("timestamp")
    letters = records.where(tenant.isNotNull() & lane.isNotNull())
    return widened(letters.select(*whose, *_PLACE, at, F.col("headers").cast(HEADERS_TYPE)), DEAD_LETTER)


def _header(name: str) -> Column:
    """Return the last header of a name as text."""
    named = F.filter("headers", lambda header: (header["key"] == name) & header["value"].isNotNull())
    return F.try_element_at(named, F.lit(-1))["value"].cast("string")
