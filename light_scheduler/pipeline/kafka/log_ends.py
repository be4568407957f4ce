"""Looks up the beginnings and ends of logs, with the isolation level for reading them.

For a read_committed consumer, a log ends at its last stable offset: a range beyond it would wait for open transactions.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from .idle import files_of
from .leaders import answered, without_errors
from .options import EARLIEST, LATEST, Bound, ReadOptions, TopicPart
from .silence import SILENT

TIMEOUT_S = 30.0

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]

_NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)

Offsets = dict[TopicPart, int]


class LogEnds:
    """Queries a cluster about the logs that options select. A context manager."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._files = files_of(options.client)
        self._consumer = Consumer(options.client, logger=SILENT)
        self._admin: AdminClient | None = None

    @property
    def is_current(self) -> bool:
        """Whether the certificate files are still the ones that it was created with."""
        return self._files == files_of(self._options.client)

    def earliest(self) -> Offsets:
        """Return the first offset of each log."""
        return {part: low for part, (low, _) in self._marks().items()}

    def earliest_of(self, parts: Collection[TopicPart], timeout: float = TIMEOUT_S) -> Offsets:
        """Return the first offset of each of these logs that exists, with a single request."""
        if not parts:
            return {}
        places = {TopicPartition(*part): _EARLIEST for part in parts}
        found = {}
        for place, answer in self._connected_admin().list_offsets(places, request_timeout=timeout).items():
            try:
                found[place.topic, place.partition] = answer.result().offset
            except KafkaException as error:
                if error.args[0].code() not in _NOT_THERE:
                    raise
        return found

    def latest(self) -> Offsets:
        """Return the offset after the last readable record of each log."""
        return {part: high for part, (_, high) in self._marks().items()}

    def starts(self) -> Offsets:
        """Return the start offsets of the options. Raises ValueError if they do not cover every partition."""
        return self._resolved(self._options.starting, "starting")

    def ends(self) -> Offsets:
        """Return the end offsets of the options. Raises ValueError if they do not cover every partition."""
        return self._resolved(self._options.ending, "ending")

    def ids(self, timeout: float = TIMEOUT_S) -> dict[str, str]:
        """Return the id of each topic. Raises KafkaException if a topic does not exist."""
        topics = sorted({topic for topic, _ in self._options.partitions}) or self._topics()
        if not topics:
            return {}
        asked = self._connected_admin().describe_topics(TopicCollection(topics), request_timeout=timeout)
        return {topic: str(described.result().topic_id) for topic, described in asked.items()}

    def _connected_admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self._options.client, logger=SILENT)
        return self._admin

    def _resolved(self, place: Bound, end: str) -> Offsets:
        marks = self._marks()
        if place.timestamp is not None:
            return self._at(place.timestamp, marks)
        if place.everywhere is not None:
            return {part: low if place.everywhere == EARLIEST else high for part, (low, high) in marks.items()}
        if place.offsets.keys() != marks.keys():
            different = sorted(place.offsets.keys() ^ marks.keys())
            raise ValueError(
                f"option {end}Offsets must name exactly the partitions that are read; it differs in {different}"
            )
        named = {EARLIEST: 0, LATEST: 1}
        return {
            part: marks[part][named[offset]] if offset in named else offset for part, offset in place.offsets.items()
        }

    def _at(self, timestamp: int, marks: dict[TopicPart, tuple[int, int]]) -> Offsets:
        asked = [TopicPartition(topic, partition, timestamp) for topic, partition in marks]

        def ask() -> Sequence[TopicPartition]:
            return without_errors(self._consumer.offsets_for_times(asked, TIMEOUT_S))

        places = answered(ask, time.monotonic() + TIMEOUT_S)
        found = {(one.topic, one.partition): one.offset for one in places}
        # If no record is that late, use the end. The look-up also finds records of open transactions, which are not
        # read.
        return {part: min(high, found[part]) if found[part] >= 0 else high for part, (_, high) in marks.items()}

    def _marks(self) -> dict[TopicPart, tuple[int, int]]:
        deadline = time.monotonic() + TIMEOUT_S
        return {part: answered(partial(self._marks_of, part), deadline) for part in self._parts()}

    def _marks_of(self, part: TopicPart) -> tuple[int, int]:
        return self._consumer.get_watermark_offsets(TopicPartition(*part), timeout=TIMEOUT_S, cached=False)

    def _parts(self) -> list[TopicPart]:
        if self._options.partitions:
            return sorted(self._options.partitions)
        parts: list[TopicPart] = []
        for name in self._topics():
            topic = self._consumer.list_topics(name, timeout=TIMEOUT_S).topics[name]
            if topic.error is not None:
                raise KafkaException(topic.error)
            parts += [(name, partition) for partition in sorted(topic.partitions)]
        return parts

    def _topics(self) -> list[str]:
        if self._options.pattern is None:
            return list(self._options.topics)
        pattern = re.compile(self._options.pattern)
        return sorted(filter(pattern.fullmatch, self._consumer.list_topics(timeout=TIMEOUT_S).topics))

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
