"""Messages that name no schedule are counted by content, and by the instant of the firing that should have one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.kafka.batches import LOG_APPEND_TIME
from light_scheduler.pipeline.audit.evidence import content_of
from light_scheduler.pipeline.audit.seeking import lacking
from light_scheduler.pipeline.audit.traced import CREATE_TIME
from light_scheduler.pipeline.audit.verdict_table import FINDINGS, SOUGHT
from light_scheduler.pipeline.lag import LAG_MS

pytestmark = pytest.mark.pipeline

AT = 1_767_225_600_000
HOUR = 3_600_000
COMMAND = b"commands:0:0"
HEADERS = "array<struct<key: string, value: binary>>"


class Topics:
    """A source whose only topic has messages of one content, at these times."""

    def __init__(self, spark: SparkSession, type: int | None, *times: int) -> None:
        rows = [(b"k", b"beat", "t", 0, offset, at, type) for offset, at in enumerate(times)]
        schema = (
            "key binary, value binary, topic string, partition int, offset bigint, timestamp bigint, timestampType int"
        )
        self._records = spark.createDataFrame(rows, schema).withColumns(
            {"headers": F.lit(None).cast(HEADERS), "timestamp": F.timestamp_millis("timestamp")}
        )

    def since(self, _topics: Any, timestamp: int) -> DataFrame:
        return self._records.where(F.unix_millis("timestamp") >= timestamp)


BROKER, SENDER = LOG_APPEND_TIME, CREATE_TIME
SECOND = 1_000


@pytest.mark.parametrize(
    ("type", "times", "missing"),
    [
        (BROKER, [AT, AT + HOUR, AT + 2 * HOUR], []),
        (BROKER, [AT, AT + 2 * HOUR], [AT + HOUR]),
        # none of which stands for the missing one
        (BROKER, [AT, AT + 2 * HOUR, AT + 3 * HOUR, AT + 4 * HOUR], [AT + HOUR]),
        (BROKER, [AT, AT + HOUR + LAG_MS, AT + 2 * HOUR], []),
        (BROKER, [AT - HOUR], [AT, AT + HOUR, AT + 2 * HOUR]),
        (None, [AT, AT + HOUR + LAG_MS, AT + 2 * HOUR], []),
        (SENDER, [AT, AT + HOUR, AT + 2 * HOUR], []),
        (SENDER, [AT, AT + HOUR + 1, AT + 2 * HOUR], [AT + HOUR]),
        (SENDER, [AT, AT, AT + 2 * HOUR], [AT + HOUR]),
        (SENDER, [], [AT, AT + HOUR, AT + 2 * HOUR]),
    ],
)
def test_a_firing_lacks_its_message_if_there_are_too_few_up_to_then(
    spark: SparkSession, type: int | None, times: list[int], missing: list[int]
) -> None:
    assert lacked(spark, [AT, AT + HOUR, AT + 2 * HOUR], type, times) == missing


def test_a_message_of_a_series_that_goes_on_is_missing_at_its_time(spark: SparkSession) -> None:
    """There are messages of firings that the history does not have yet."""
    beats = [AT + number * SECOND for number in range(100)]
    assert lacked(spark, beats[:95], SENDER, beats[:50] + beats[51:]) == [beats[50]]


def test_firings_of_one_instant_are_counted(spark: SparkSession) -> None:
    assert lacked(spark, [AT] * 5 + [AT + SECOND], SENDER, [AT] * 3 + [AT + SECOND] * 2) == [AT, AT]


def lacked(spark: SparkSession, fired: list[int], type: int | None, times: list[int]) -> list[int]:
    """Return when the firings without a message were due."""
    digest = content_of(b"k", b"beat", []).digest
    sought = [
        (SOUGHT, None, "acme", "a", 0, at, at, "history", 0, number, None, "t", digest, COMMAND)
        for number, at in enumerate(fired)
    ]
    with ExitStack() as stack:
        topics: Any = Topics(spark, type, *times)
        faults = lacking(spark.createDataFrame(sought, FINDINGS), topics, stack)
        assert faults is not None
        rows = faults.collect()
        assert all(row["value"] == COMMAND for row in rows)
        return sorted(row["due"] for row in rows)
