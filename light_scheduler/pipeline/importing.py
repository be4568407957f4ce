"""`import`: writes a table from `export` to the changelogs of an application whose workers are stopped.

A schedule is more than the command that created it: it also has its next firing, its attempt, firings that wait for
their completion, and a pause. A command cannot express that, and would be decided again at another instant. So an
import writes the source of a partition's table: its changelog. Workers that start later read it like their own.

Such records must not be mixed with those of running workers, or with schedules that have changed meanwhile. So the job
requires that the workers' group has no members, and that the changelogs contain nothing but schedules of the table. A
killed import that is run again passes this test, and writes what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.errors import JobError
from light_scheduler.model import TopicNames
from light_scheduler.wire.state import SCHEDULE_KIND, decode_entry, encode_entry, identity_of

from .changelog import bulk_commands_at_work, last_records
from .exclusion import members, only_import
from .exported import read_export
from .fitness import require_fitting
from .import_decisions import Destination, adopted, adopting_topics, place_in
from .job import SILENT, Cluster, Progress, configured
from .kafka import FORMAT
from .kafka.log_ends import TIMEOUT_S
from .kafka.silence import SILENT as NO_LOG
from .schedule_table import IN_PYTHON
from .schemas import arrow_schema
from .topics import register, require_topic

_RECORDS = "changelog string, partition int, key binary, value binary"


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Source and destination of schedules.

    `topics` maps topics of the table to those of the target: commands topics, and target topics of firings. A commands
    topic may be omitted if there is only one on either side. Topics in `keyed_topics` may have a different number of
    partitions than in the table, since their dialect chooses partitions by key. `limits` are those of commands: if any
    schedule exceeds them, nothing is imported. With `replace`, existing schedules stay, unless the table has their id.
    """

    table: str
    cluster: Cluster
    app_id: str
    commands_topics: tuple[str, ...]
    limits: Limits = NO_LIMITS
    format: str = "parquet"
    topics: Mapping[str, str] = field(default_factory=dict)
    keyed_topics: frozenset[str] = frozenset()
    replace: bool = False


@dataclass(frozen=True)
class ImportSummary:
    """The number of schedules in the table, the number written by this run, and the bytes of their state."""

    schedules: int
    written: int
    bytes: int = field(default=0, compare=False)

    @property
    def failed(self) -> bool:
        return False

    def lines(self) -> list[str]:
        there = self.schedules - self.written
        return [f"{self.written:,} schedules written" + (f", {there:,} were there already" if there else "")]


def main(spark: SparkSession, options: ImportOptions, progress: Progress = SILENT) -> ImportSummary:
    """Write the schedules of a table. Raises JobError if that could do harm, or a topic does not match."""
    register(spark)
    _require_no_workers(options)
    with configured(spark, IN_PYTHON):
        table = read_export(spark, options.table, options.format)
        with progress.phase("Checking the table and its topics"):
            destinations = _destinations(table, options)
            changelogs = {destination.changelog for destination in destinations.values()}
            _require_no_bulk_commands(spark, options, changelogs)
            targets = require_fitting(table, destinations, options.topics, options.limits)
            _require_targets(targets, options)
        records = _records(table, destinations, options.topics)
        wanted = {
            changelog: records.where(F.col("changelog") == changelog).drop("changelog") for changelog in changelogs
        }
        if not wanted:  # an empty table
            return ImportSummary(0, 0)
        with only_import(options.cluster, options.app_id, min(wanted)):
            there = {changelog: _there(spark, options.cluster, changelog) for changelog in wanted}
            if not options.replace:
                with progress.phase("Reading the changelogs"):
                    for changelog, records in wanted.items():
                        _require_nothing_else(records, there[changelog], changelog)
            with progress.phase("Writing schedules"):
                schedules = table.count()
                done = [_write(wanted[changelog], there[changelog], changelog, options) for changelog in wanted]
    _require_no_workers(options)  # a worker that started meanwhile may have read only a part
    return ImportSummary(schedules, sum(written for written, _ in done), sum(size for _, size in done))


def _require_no_workers(options: ImportOptions) -> None:
    admin = AdminClient(options.cluster.configuration(), logger=NO_LOG)
    try:
        workers = members(admin, options.app_id)
    except KafkaException as error:
        raise JobError(f"cannot tell whether workers run: {error.args[0].str()}") from error
    if workers:
        raise JobError(f"workers of {options.app_id} run ({workers}): stop them, import, and start them again")


def _destinations(table: DataFrame, options: ImportOptions) -> dict[str, Destination]:
    """Return the destinations of the schedules, by commands topic of the table."""
    names = TopicNames(options.app_id)
    partitions: dict[str, int] = dict(table.select("commands_topic", "partitions").distinct().collect())
    destinations: dict[str, Destination] = {}
    for source, target in adopting_topics(partitions, options.commands_topics, options.topics).items():
        changelog = names.changelog(target)
        count, kept = require_topic(options.cluster, target), require_topic(options.cluster, changelog)
        if kept < count:
            raise JobError(f"{changelog} has {kept} partitions, and {target} has {count}: `topics grow` adds them")
        if count != partitions[source] and target not in options.keyed_topics:
            raise JobError(
                f"{source} had {partitions[source]} partitions, and {target} has {count}: producers of its dialect "
                f"choose partitions in their own way, so create the topics of {options.app_id} with "
                f"{partitions[source]} partitions"
            )
        destinations[source] = Destination(changelog, count)
    return destinations


def _require_no_bulk_commands(spark: SparkSession, options: ImportOptions, changelogs: set[str]) -> None:
    for changelog in sorted(changelogs):
        if at_work := bulk_commands_at_work(spark, options.cluster, changelog):
            raise JobError(
                f"{changelog} has {at_work:,} bulk commands that are not finished and would change what is imported: "
                f"start the workers of {options.app_id}, wait for the answers, stop the workers and import again"
            )


def _require_targets(targets: set[str], options: ImportOptions) -> None:
    found = AdminClient(options.cluster.configuration(), logger=NO_LOG).list_topics(timeout=TIMEOUT_S).topics
    if missing := sorted(targets - found.keys()):
        raise JobError(f"target topics are missing: create {', '.join(missing)}, or map them with --map-topic")


def _records(table: DataFrame, destinations: Mapping[str, Destination], topics: Mapping[str, str]) -> DataFrame:
    """Return the changelog records for the schedules of a table."""
    schema = arrow_schema(_RECORDS)

    def records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            entries = [adopted(decode_entry(record), topics) for record in batch.column("record").to_pylist()]
            to = [destinations[source] for source in batch.column("commands_topic").to_pylist()]
            was = zip(batch.column("partition").to_pylist(), batch.column("partitions").to_pylist(), strict=True)
            places = [place_in(*each, *place) for each, place in zip(zip(to, entries, strict=True), was, strict=True)]
            columns = [
                pa.array([destination.changelog for destination in to]),
                pa.array(places, pa.int32()),
                pa.array([SCHEDULE_KIND + identity_of(entry) for entry in entries]),
                pa.array(map(encode_entry, entries), pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return table.select("commands_topic", "partition", "partitions", "record").mapInArrow(records, _RECORDS)


def _there(spark: SparkSession, cluster: Cluster, changelog: str) -> DataFrame:
    """Return the content of a changelog as (partition, key, value). The value is null if the schedule has ended."""
    return last_records(spark, cluster, changelog).select(
        "partition",
        F.concat(F.lit(SCHEDULE_KIND), "identity").alias("key"),
        # A value followed by progress never equals one that an import writes.
        F.when(F.col("progress").isNull(), F.col("schedule"))
        .otherwise(F.concat("schedule", "progress"))
        .alias("value"),
    )


def _require_nothing_else(wanted: DataFrame, there: DataFrame, changelog: str) -> None:
    of_table = wanted.select("partition", "key", F.col("value").alias("wanted"))
    both = there.join(of_table, ["partition", "key"], "left")
    foreign = F.col("wanted").isNull() & F.col("value").isNotNull()
    changed = F.col("wanted").isNotNull() & ~F.col("value").eqNullSafe(F.col("wanted"))
    found = both.agg(F.count_if(foreign).alias("foreign"), F.count_if(changed).alias("changed")).first()
    assert found is not None, "an aggregate over all has one row"
    if found.foreign:
        raise JobError(
            f"{changelog} has {found.foreign:,} schedules that are not in the table: import into an empty application, "
            "or use --replace"
        )
    if found.changed:
        raise JobError(
            f"{found.changed:,} schedules of the table are in {changelog} already and have fired or changed since: "
            "imported again, they would fire again"
        )


def _write(wanted: DataFrame, there: DataFrame, changelog: str, options: ImportOptions) -> tuple[int, int]:
    """Write the missing records. Return their number, and the bytes of their values."""
    count = Observation()
    counts = F.count(F.lit(1)).alias("written"), F.sum(F.octet_length("value")).alias("bytes")
    missing = wanted.join(there, ["partition", "key", "value"], "left_anti")
    missing = missing.observe(count, *counts)
    writer = missing.write.format(FORMAT).mode("append").option("topic", changelog)
    for name, value in options.cluster.options().items():
        writer = writer.option(name, value)
    writer.save()
    return count.get["written"], count.get["bytes"] or 0
