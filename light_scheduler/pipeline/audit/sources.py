"""Where an audit's records come from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.archive import read_archive
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.kafka.fetching import first_timestamps
from light_scheduler.pipeline.kafka.log_ends import TIMEOUT_S, LogEnds, Offsets
from light_scheduler.pipeline.kafka.options import ReadOptions
from light_scheduler.pipeline.kafka.ranges import OffsetRange
from light_scheduler.pipeline.kafka.silence import SILENT
from light_scheduler.pipeline.losses import losses
from light_scheduler.pipeline.tables import located
from light_scheduler.pipeline.topics import configurations, read_topics

from .evidence_source import read_evidence
from .readings import ROWS, Reading

_ALL_RECORDS = {"kafka.isolation.level": "read_uncommitted"}
_READ = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@dataclass(frozen=True)
class Log:
    """Facts about a topic: partitions that have lost their beginning, of how many (None: unknown), and whether it is
    compacted.

    Since `whole_since` (UTC epoch ms) it has all records written to it, as far as is known without reading it.
    """

    truncated: frozenset[int] = frozenset()
    is_compacted: bool = False
    whole_since: int = 0
    partitions: int | None = None


class Source(Protocol):
    """Kafka's own columns, of topics."""

    def logs(self, topics: Sequence[str]) -> dict[str, Log]:
        """Look topics up; missing ones are left out. Raises JobError if that fails."""
        ...

    def read(self, topics: Sequence[str], since: int | None = None) -> DataFrame:
        """Return the records of existing topics, from an instant on (UTC epoch ms) or from their beginning."""
        ...

    def since(self, topics: Sequence[str], instant: int) -> DataFrame:
        """Return the records of existing topics from an instant on (UTC epoch ms), those read before too."""
        ...

    def evidence(self, topics: Sequence[str], reading: Reading, since: int | None = None) -> DataFrame:
        """Return the evidence in these records, columns ROWS."""
        ...

    def firsts(self, topic: str, partitions: Collection[int]) -> dict[int, int]:
        """Return the timestamp (UTC epoch ms) of the first record left in each partition that has any.

        Raises JobError if that fails.
        """
        ...

    def open_since(self, topics: Sequence[str]) -> int | None:
        """Return the first timestamp (UTC epoch ms) in open transactions, behind which nothing of existing topics can
        be read; None if there are none. Raises JobError if that fails.
        """
        ...


@contextmanager
def asking(cluster: Cluster) -> Iterator[None]:
    """Raise JobError if a query to a cluster in the block fails, or is not answered in time."""
    try:
        yield
    except KafkaException as error:
        raise JobError(f"{cluster.bootstrap_servers} cannot be asked: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise JobError(
            f"{cluster.bootstrap_servers} does not answer: {error}. Run the audit again when it does"
        ) from error


@dataclass(frozen=True)
class Topics:
    """The topics of a cluster, read_committed."""

    spark: SparkSession
    cluster: Cluster

    def logs(self, topics: Sequence[str]) -> dict[str, Log]:
        with asking(self.cluster):
            there = self._partitions(topics)
            begins = self._begins(there)
        compacted = self._compacted(list(there))
        return {
            topic: Log(
                frozenset(part for part in partitions if begins[topic, part] > 0),
                topic in compacted,
                partitions=len(partitions),
            )
            for topic, partitions in there.items()
        }

    def read(self, topics: Sequence[str], since: int | None = None) -> DataFrame:
        return read_topics(self.spark, self.cluster.bootstrap_servers, topics, **self._options(since))

    def evidence(self, topics: Sequence[str], reading: Reading, since: int | None = None) -> DataFrame:
        return read_evidence(self.spark, self.cluster.bootstrap_servers, topics, reading, **self._options(since))

    def since(self, topics: Sequence[str], instant: int) -> DataFrame:
        return self.read(topics, instant)

    def _options(self, since: int | None) -> dict[str, str]:
        started = {} if since is None else {"startingTimestamp": str(since)}
        return {**self.cluster.client_options(), **started}

    def firsts(self, topic: str, partitions: Collection[int]) -> dict[int, int]:
        options = self._assigned({topic: sorted(partitions)})
        with asking(self.cluster):
            with LogEnds(options) as logs:
                begins, ends = logs.earliest(), logs.latest()
            found = first_timestamps(options, [OffsetRange(*part, begins[part], end) for part, end in ends.items()])
        return {partition: at for (_, partition), at in found.items()}

    def open_since(self, topics: Sequence[str]) -> int | None:
        with asking(self.cluster):
            if not (there := self._partitions(topics)):
                return None
            all_records = self._assigned(there, **_ALL_RECORDS)
            with LogEnds(self._assigned(there)) as readable, LogEnds(all_records) as written:
                ends, highs = readable.latest(), written.latest()
            hidden = [OffsetRange(*part, end, highs[part]) for part, end in ends.items() if end < highs[part]]
            firsts = first_timestamps(all_records, hidden)
        return min(firsts.values(), default=None)

    def written(self, topics: Sequence[str]) -> Offsets:
        """Return where those topics end that are there, with what open transactions have written. Raises JobError."""
        with asking(self.cluster):
            if not (there := self._partitions(topics)):
                return {}
            with LogEnds(self._assigned(there, **_ALL_RECORDS)) as logs:
                return logs.latest()

    def _partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """Return the partitions of those topics that are there. Raises KafkaException."""
        admin = AdminClient(self.cluster.configuration(), logger=SILENT)
        there = admin.list_topics(timeout=TIMEOUT_S).topics
        return {topic: sorted(there[topic].partitions) for topic in topics if topic in there}

    def _begins(self, partitions: Mapping[str, Sequence[int]]) -> Offsets:
        """Return the first offset of each partition. Raises KafkaException."""
        if not partitions:
            return {}
        with LogEnds(self._assigned(partitions)) as logs:
            return logs.earliest()

    def _assigned(self, partitions: Mapping[str, Sequence[int]], **options: str) -> ReadOptions:
        given = {**self.cluster.options(), "assign": json.dumps(partitions), **options}
        return ReadOptions.parse(given, streaming=False)

    def _compacted(self, topics: Sequence[str]) -> set[str]:
        found = configurations(self.cluster, topics)
        return {topic for topic, configuration in found.items() if configuration.is_compacted}


@dataclass(frozen=True)
class Archive:
    """The table that the job `archive` fills, as it is now: all topics up to about the same instant."""

    spark: SparkSession
    path: str

    def logs(self, topics: Sequence[str]) -> dict[str, Log]:
        kept = self.read(topics).groupBy("topic", "partition").agg(F.min("offset").alias("low")).collect()
        lost = losses(self.spark, located(self.spark, self.path), topics)
        lows: dict[str, dict[int, int]] = {}
        for row in kept:
            lows.setdefault(row.topic, {})[row.partition] = max(row.low, lost.get((row.topic, row.partition), 0))
        return {topic: Log(frozenset(part for part, low in of.items() if low > 0)) for topic, of in lows.items()}

    def firsts(self, topic: str, partitions: Collection[int]) -> dict[int, int]:
        left = self.read([topic]).where(F.col("partition").isin(*partitions))
        for (_, partition), offset in losses(self.spark, located(self.spark, self.path), [topic]).items():
            left = left.where((F.col("partition") != partition) | (F.col("offset") >= offset))
        return dict(left.groupBy("partition").agg(F.unix_millis(F.min("timestamp"))).collect())

    def read(self, topics: Sequence[str], since: int | None = None) -> DataFrame:
        table = read_archive(self.spark, self.path, since or 0).where(F.col("topic").isin(list(topics)))
        return table if since is None else table.where(F.unix_millis("timestamp") >= since)

    def since(self, topics: Sequence[str], instant: int) -> DataFrame:
        return self.read(topics, instant)

    def evidence(self, topics: Sequence[str], reading: Reading, since: int | None = None) -> DataFrame:
        return self.read(topics, since).select(*_READ).mapInArrow(reading, ROWS)

    def open_since(self, topics: Sequence[str]) -> int | None:  # noqa: ARG002 (it has what was decided)
        return None
