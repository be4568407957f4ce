"""Checks whether all schedules of an exported table can be imported together, before `import` writes anything.

It checks the column `record`, which is what is written. The other columns are for people, and may have been changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.engine.limits import Limits
from light_scheduler.errors import FormatError, InvalidCommand, JobError
from light_scheduler.wire.state import decode_entry

from .import_decisions import Destination, adopted, place_in, refusal_of
from .schemas import arrow_schema

_CHECKED = "source string, changelog string, partition int, name string, target string, refusal string"


def require_fitting(
    table: DataFrame, destinations: Mapping[str, Destination], topics: Mapping[str, str], limits: Limits
) -> set[str]:
    """Return the topics to which firings will go. Raises JobError if a schedule exceeds a limit, or two schedules would
    have the same place.

    `destinations` has the destination of each commands topic of the table. `topics` maps topics to new names.
    """
    checked = _checked(table, destinations, topics, limits).persist()
    try:
        _require_no_refusal(checked)
        _require_places_of_their_own(checked)
        return {row.target for row in checked.select("target").distinct().collect()}
    finally:
        checked.unpersist()


def _checked(
    table: DataFrame, destinations: Mapping[str, Destination], topics: Mapping[str, str], limits: Limits
) -> DataFrame:
    schema = arrow_schema(_CHECKED)

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([checked_row(row) for row in batch.to_pylist()], schema=schema)

    def checked_row(row: dict[str, Any]) -> dict[str, Any]:
        source, partition, partitions = row["commands_topic"], row["partition"], row["partitions"]
        checked = {"source": source, "changelog": destinations[source].changelog, "partition": partition}
        try:
            entry = adopted(decode_entry(row["record"]), topics)
        except FormatError as error:
            return checked | {"name": f"{row['tenant']}/{row['id']}", "target": "", "refusal": str(error)}
        refusal = refusal_of(entry, limits)
        if not 0 <= partition < partitions:
            refusal = f"partition: {partition} is none of {partitions}"
        try:
            checked["partition"] = place_in(destinations[source], entry, partition, partitions)
        except InvalidCommand as error:
            refusal = str(error)
        name = f"{entry.schedule.tenant}/{entry.schedule.id}"
        return checked | {"name": name, "target": entry.schedule.target.topic, "refusal": refusal}

    columns = ("commands_topic", "partition", "partitions", "tenant", "id", "record")
    return table.select(*columns).mapInArrow(check, _CHECKED)


def _require_no_refusal(checked: DataFrame) -> None:
    refused = checked.where("refusal is not null")
    if (first := refused.orderBy("source", "name").first()) is not None:
        raise JobError(
            f"{refused.count():,} schedules of the table cannot be imported, such as {first.name}: {first.refusal}. "
            "Nothing was imported. Raise the limit, map the topic, or cancel them and export again"
        )


def _require_places_of_their_own(checked: DataFrame) -> None:
    # Nearly all names occur once, so this keeps little to count.
    several = checked.groupBy("changelog", "name").count().where("count > 1").select("changelog", "name")
    suspects = checked.join(several, ["changelog", "name"], "left_semi")
    of_a_name = suspects.groupBy("changelog", "name").agg(
        F.count("*").alias("rows"),
        F.count_distinct("partition").alias("places"),
        F.sort_array(F.collect_set("source")).alias("sources"),
    )
    # Within one topic, an id may occur in two partitions, with different keys. In two topics that are merged, it may
    # not.
    twice = of_a_name.where("rows > places or size(sources) > 1")
    if (first := twice.orderBy("name").first()) is not None:
        raise JobError(
            f"{twice.count():,} schedules would replace each other in {first.changelog}, such as {first.name} of "
            f"{' and '.join(first.sources)}. Nothing was imported. Map these commands topics to different ones"
        )
