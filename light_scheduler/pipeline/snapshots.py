"""Changelogs while workers run: each partition as of one instant (see `catching_up`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import NamedTuple

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from light_scheduler.errors import JobError
from light_scheduler.model import CHANGELOG_LAG_MS

from .catching_up import Ends, caught_up
from .changelog import latest, latest_of_both, schedules_of
from .job import Cluster
from .kafka.log_ends import LogEnds
from .kafka.options import ReadOptions, nested
from .tables import catalog_name, unmark
from .topics import configurations, read_topics


class RecordsLostError(JobError):
    """Records that were already read were lost with an executor, and are no longer in the log."""


class _Range(NamedTuple):
    """The last records in a range of offsets, kept on disk, and figures that change if any record does."""

    latest: DataFrame
    figures: Row | None

    @classmethod
    def read(cls, records: DataFrame) -> _Range:
        kept = latest(records).persist(StorageLevel.DISK_ONLY)
        return cls(kept, _figures(kept))


@contextmanager
def snapshot(spark: SparkSession, cluster: Cluster, changelog: str) -> Iterator[DataFrame]:
    """Yield the result of `last_records`, with each partition as of one instant within this call.

    Raises JobError if the changelog cannot be read, or grows faster than it is read. Raises RecordsLostError at the end
    of the block if read records were lost with an executor, and the changelog no longer had them when they were read
    again.
    """
    kept: list[_Range] = []

    def read(start: Ends | None, end: Ends) -> _Range:
        starts = {} if start is None else {"startingOffsets": json.dumps(nested(start))}
        bounds = {**starts, "endingOffsets": json.dumps(nested(end))}
        records = read_topics(spark, cluster.bootstrap_servers, [changelog], **bounds, **cluster.client_options())
        kept.append(_Range.read(records))
        return kept[-1]

    try:
        with _ends_of(cluster, changelog) as ends:
            ranges = caught_up(ends, read, _lag_s(cluster, changelog))
        from_the_last = [one.latest for one in reversed(ranges)]  # all but the first are small
        yield schedules_of(reduce(lambda later, earlier: latest_of_both(earlier, later), from_the_last))
        if any(_figures(one.latest) != one.figures for one in ranges):
            raise RecordsLostError(
                f"an executor was lost with what it had read of {changelog}, some of which compaction had removed when "
                "it was read again: what was written lacks schedules. Run the job again"
            )
    finally:
        for one in kept:
            one.latest.unpersist()


@contextmanager
def unmarked_if_lost(spark: SparkSession, table: str | None, format: str) -> Iterator[None]:
    """If the block writes an incomplete table, make it look like that of a killed job (None: no table).

    Raises RecordsLostError or JobError like the block.
    """
    try:
        yield
    except RecordsLostError as error:
        if table is None:
            raise
        shown = JobError(f"{error}. Until then, {table} shows what was written: do not use it")
        if format == "delta" or catalog_name(table) is not None:
            raise shown from error
        try:
            unmark(spark, table, format)
        except (PySparkException, Py4JError) as why:
            raise shown from why
        raise


def _lag_s(cluster: Cluster, changelog: str) -> float:
    """Return for how long compaction certainly leaves records alone (s); 0 if the setting is below that of new topics.

    It is half of the setting. Records after the end of a range may be older than the end, if a transaction is open
    there. The other half allows for that: it is longer than the transactions of workers last.
    """
    lag_ms = configurations(cluster, [changelog])[changelog].min_compaction_lag_ms
    return lag_ms / 1_000 / 2 if lag_ms >= CHANGELOG_LAG_MS else 0.0


def _figures(kept: DataFrame) -> Row | None:
    """Return figures of last records. If any is removed from the log, there are fewer keys, or earlier records."""
    offsets = [F.sum(F.col(f"{record}.offset").cast("decimal(19,0)")) for record in ("defined", "moved")]
    return kept.agg(F.count(F.lit(1)), *offsets).first()


@contextmanager
def _ends_of(cluster: Cluster, changelog: str) -> Iterator[Callable[[], Ends]]:
    try:
        options = ReadOptions.parse({**cluster.options(), "subscribe": changelog}, streaming=False)
        with LogEnds(options) as logs:
            yield logs.latest
    except KafkaException as error:
        raise JobError(f"{changelog} cannot be read: {error.args[0].str()}") from error
