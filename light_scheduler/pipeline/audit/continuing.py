"""Topics from where the last audit ended."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.kafka.log_ends import LogEnds, Offsets
from light_scheduler.pipeline.kafka.options import ReadOptions, nested
from light_scheduler.pipeline.kafka.positions import Position
from light_scheduler.pipeline.topics import read_topics

from .evidence_source import read_evidence
from .readings import Reading
from .sources import Log, Topics, asking
from .watermark import Watermark


class ContinuedTopics:
    """A `Source` of what has come since a watermark; of everything, without one.

    A topic is read up to where it ended when it was looked at first, so that what is read and `reached` are the same.
    """

    def __init__(self, spark: SparkSession, cluster: Cluster, last: Watermark | None, own: Collection[str]) -> None:
        self._topics = Topics(spark, cluster)
        self._last = last
        self._own = own
        self._begins: Offsets = {}
        self._ends: Offsets = {}
        self._ids: dict[str, str] = {}

    def reached(self) -> Position:
        """Return up to where topics have been read, of those too that are not there any more."""
        before = Position({}, {}) if self._last is None else self._last.position
        return Position({**before.offsets, **self._ends}, {**before.ids, **self._ids})

    def logs(self, topics: Sequence[str]) -> dict[str, Log]:
        logs = self._topics.logs(topics)
        if not logs:
            return {}
        ids, begins, ends = self._looked_up(list(logs))
        self._ids |= ids
        self._begins |= begins
        if self._last is None:
            return logs
        self._last.check_logs(self._own, ids, begins, ends)
        return {topic: self._continued(topic, log, self._last) for topic, log in logs.items()}

    def read(self, topics: Sequence[str], since: int | None = None) -> DataFrame:  # noqa: ARG002 (offsets say it)
        cluster = self._topics.cluster
        return read_topics(self._topics.spark, cluster.bootstrap_servers, topics, **self._options(topics))

    def since(self, topics: Sequence[str], instant: int) -> DataFrame:
        return self._topics.since(topics, instant)

    def evidence(self, topics: Sequence[str], reading: Reading, since: int | None = None) -> DataFrame:  # noqa: ARG002
        cluster = self._topics.cluster
        return read_evidence(self._topics.spark, cluster.bootstrap_servers, topics, reading, **self._options(topics))

    def firsts(self, topic: str, partitions: Collection[int]) -> dict[int, int]:
        return self._topics.firsts(topic, partitions)

    def open_since(self, topics: Sequence[str]) -> int | None:
        return self._topics.open_since(topics)

    def written_after(self, history: str, topics: Sequence[str]) -> Offsets:
        """Find out where the history ends, and then where those topics end that are there, as `Topics.written`."""
        self._options([history])
        return self._topics.written(topics)

    def read_as_far(self, written: Offsets) -> dict[str, dict[int, int]]:
        """Return where topics ended: those of which all that was `written` has been read."""
        ends: dict[str, dict[int, int]] = {}
        for (topic, partition), end in written.items():
            ends.setdefault(topic, {})[partition] = end
        reached = {topic: {part: end for (name, part), end in self._ends.items() if name == topic} for topic in ends}
        return {
            topic: of_topic
            for topic, of_topic in ends.items()
            if reached[topic].keys() == of_topic.keys()
            if all(reached[topic][part] >= end for part, end in of_topic.items())
        }

    def _options(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the options that say from where to where topics are read."""
        if unread := [topic for topic in topics if not any(name == topic for name, _ in self._ends)]:
            _, begins, ends = self._looked_up(unread)
            self._begins |= {part: begin for part, begin in begins.items() if part not in self._begins}
            self._ends |= ends
        until = {part: end for part, end in self._ends.items() if part[0] in topics}
        before: Offsets = {} if self._last is None else dict(self._last.position.offsets)
        starts = {part: max(before.get(part, 0), self._begins.get(part, 0)) for part in until}
        return {
            **self._topics.cluster.client_options(),
            "startingOffsets": json.dumps(nested({part: min(start, until[part]) for part, start in starts.items()})),
            "endingOffsets": json.dumps(nested(until)),
        }

    def _continued(self, topic: str, log: Log, last: Watermark) -> Log:
        """Return a topic as it was when it was first audited: what has been deleted since has been read."""
        reached = {part: offset for (name, part), offset in last.position.offsets.items() if name == topic}
        if topic not in last.whole_since or any(self._begins[topic, part] > end for part, end in reached.items()):
            return log
        return replace(log, truncated=frozenset(), whole_since=last.whole_since[topic])

    def _looked_up(self, topics: Sequence[str]) -> tuple[dict[str, str], Offsets, Offsets]:
        """Return the ids of topics, and where they begin and end."""
        cluster = self._topics.cluster
        options = ReadOptions.parse({**cluster.options(), "subscribe": ",".join(topics)}, streaming=False)
        with asking(cluster), LogEnds(options) as ends:
            return ends.ids(), ends.earliest(), ends.latest()
