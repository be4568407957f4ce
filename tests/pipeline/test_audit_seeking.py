"""Messages that name no schedule are counted by content, up to the firing that should have one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.audit.evidence import content_of
from light_scheduler.pipeline.audit.seeking import lacking
from light_scheduler.pipeline.audit.verdict_table import FINDINGS, SOUGHT
from light_scheduler.pipeline.lag import LAG_MS

pytestmark = pytest.mark.pipeline

AT = 1_767_225_600_000
HOUR = 3_600_000
HEADERS = "array<struct<key: string, value: binary>>"


class Topics:
    """A source whose only topic has messages of one content, at these times."""

    def __init__(self, spark: SparkSession, *times: int) -> None:
        rows = [(b"k", b"beat", "t", 0, offset, at) for offset, at in enumerate(times)]
        schema = "key binary, value binary, topic string, partition int, offset bigint, timestamp bigint"
        self._records = spark.createDataFrame(rows, schema).withColumns(
            {"headers": F.lit(None).cast(HEADERS), "timestamp": F.timestamp_millis("timestamp")}
        )

    def since(self, _topics: Any, timestamp: int) -> DataFrame:
        return self._records.where(F.unix_millis("timestamp") >= timestamp)


@pytest.mark.parametrize(
    ("times", "missing"),
    [
        ([AT, AT + HOUR, AT + 2 * HOUR], []),
        ([AT, AT + 2 * HOUR], [AT + HOUR]),
        ([AT, AT + 2 * HOUR, AT + 3 * HOUR, AT + 4 * HOUR], [AT + HOUR]),  # none of which stands for the missing one
        ([AT, AT + HOUR + LAG_MS, AT + 2 * HOUR], []),
        ([AT - HOUR], [AT, AT + HOUR, AT + 2 * HOUR]),
    ],
)
def test_a_firing_lacks_its_message_if_there_are_too_few_up_to_then(
    spark: SparkSession, times: list[int], missing: list[int]
) -> None:
    digest = content_of(b"k", b"beat", []).digest
    sought = [
        (SOUGHT, None, "acme", "a", 0, at, at, "history", 0, number, None, "t", digest, None)
        for number, at in enumerate([AT, AT + HOUR, AT + 2 * HOUR])
    ]
    with ExitStack() as stack:
        faults = lacking(spark.createDataFrame(sought, FINDINGS), Topics(spark, *times), stack)  # type: ignore[arg-type]
        assert faults is not None
        assert sorted(row["due"] for row in faults.collect()) == missing
