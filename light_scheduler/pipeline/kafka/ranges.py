"""Ranges of offsets: the input partitions of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from .options import TopicPart


class OffsetRange(InputPartition):
    """The offsets of one log from `start` up to, but not including, `end`."""

    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        super().__init__(None)
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.start}, {self.end})"

    def __len__(self) -> int:
        return self.end - self.start

    def cut(self, pieces: int) -> list[OffsetRange]:
        """Split this range into `pieces` ranges of about the same length."""
        at = [self.start + len(self) * piece // pieces for piece in range(pieces + 1)]
        return [OffsetRange(self.topic, self.partition, start, end) for start, end in pairwise(at) if end > start]


def planned(
    ranges: Iterable[OffsetRange], *, at_least: int | None = None, longest: int | None = None
) -> list[OffsetRange]:
    """Split ranges so that none has more than `longest` offsets and there are about `at_least`; drop empty ones."""
    whole = [one for one in ranges if len(one) > 0]
    if longest is not None:
        whole = [piece for one in whole for piece in one.cut(-(-len(one) // longest))]
    if at_least is not None and whole and len(whole) < at_least:
        total = sum(map(len, whole))
        whole = [piece for one in whole for piece in one.cut(max(1, round(len(one) * at_least / total)))]
    return whole


def limited(starts: Mapping[TopicPart, int], ends: Mapping[TopicPart, int], most: int) -> dict[TopicPart, int]:
    """Return ends for about `most` offsets in total, distributed in proportion to what each log has. Every log makes
    progress."""
    total = sum(ends[part] - starts[part] for part in ends)
    if total <= most:
        return dict(ends)
    return {part: starts[part] + -(-(end - starts[part]) * most // total) for part, end in ends.items()}
