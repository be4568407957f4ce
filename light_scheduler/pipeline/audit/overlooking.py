"""Finds commands that lanes passed over before a schedule fired (see `lane_order`), among all schedules of a lane."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.schemas import arrow_schema

from .faults import FaultKind
from .lane_order import offsets_in
from .verdict_table import CARRIED_OUT, FAULT, PASSED_OVER

_LOG = ["topic", "partition", "tenant", "number"]
"""The commands of a tenant in a partition, and the partition of the history that tells of them."""

_TOLD = "topic string, partition int, tenant string, number bigint, line bigint, carried_out bigint"


def overlooked(found: DataFrame) -> DataFrame | None:
    """Return faults for those commands in findings that lanes passed over; None if there can be none."""
    suspects = found.where(F.col("what") == PASSED_OVER)
    if not suspects.count():  # nothing that follows is planned then
        return None
    spans = suspects.groupBy(*_LOG).agg(F.min("offset").alias("after"), F.max("due").alias("before"))
    pieces = found.where(F.col("what") == CARRIED_OUT).select(*_LOG, "value").join(F.broadcast(spans), _LOG)
    told = pieces.mapInArrow(_unpacked, _TOLD)
    waited = suspects.select(*_LOG, "id", "lane", "at", "offset", "detail", F.col("due").alias("line"))
    before = Window.partitionBy(*_LOG).orderBy("line").rangeBetween(Window.unboundedPreceding, -1)
    in_order = waited.unionByName(told, allowMissingColumns=True)
    judged = in_order.withColumn("carried_out", F.max("carried_out").over(before))
    return judged.where("offset < carried_out").select(
        F.lit(FAULT).alias("what"),
        F.lit(FaultKind.IGNORED.value).alias("name"),
        *("tenant", "id", "lane", "at", "topic", "partition", "offset"),
        F.lit(1).cast("bigint").alias("number"),
        "detail",
    )


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the commands, and the lines that tell of them, that come after the first suspect and before the last."""
    schema = arrow_schema(_TOLD)
    for batch in batches:
        for row in batch.to_pylist():
            offsets = offsets_in(row["value"])
            offsets = offsets[(offsets[:, 0] < row["before"]) & (offsets[:, 1] > row["after"])]
            of = [pa.repeat(pa.scalar(row[name], schema.field(name).type), len(offsets)) for name in _LOG]
            columns = [*of, *(pa.array(np.ascontiguousarray(offsets[:, each])) for each in (0, 1))]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
