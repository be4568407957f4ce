"""Passes rows of tables through the tasks of a load, and evaluates the reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import StructField

from light_scheduler.pipeline.tables import write_table

from .copies import copies
from .malformed import WHY
from .refusals import refused_kinds
from .summary import LoadSummary
from .task import COUNTS, REFUSED, LoadTask, report_schema


@dataclass(frozen=True)
class PlacedRows:
    """Rows to load at once, with the columns of `placed`: `fields`, and columns for the rows' place.

    `files` contain the rows; of files with the same rows, one is sent. It is empty for versions of a table, in which
    equal rows are all sent. `rests` returns the lines of the files that were not read completely, given the tasks'
    reports (see `one_value`).
    """

    rows: DataFrame
    fields: list[StructField]
    files: Sequence[str] = ()
    rests: Callable[[DataFrame], DataFrame] | None = None


def placed(table: DataFrame, fields: list[StructField], why: Column | None = None) -> DataFrame:
    """Return the columns of a table, with columns for each row's file and piece, and WHY if it is given."""
    there = set(table.columns)
    return table.select(
        *(F.col(f"`{one.name}`") if one.name in there else _nothing(one) for one in fields),
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.file_block_start").alias("_block"),
        F.col("_metadata.file_size").alias("_size"),
        F.unix_millis("_metadata.file_modification_time").alias("_modified"),
        *([] if why is None else [why.alias(WHY)]),
    )


def send(placed: PlacedRows, task: LoadTask, refused: str | None, *, to_add: bool) -> LoadSummary:
    """Load rows. Refused rows are written to a table: they replace its content, or are added if `to_add`."""
    with ExitStack() as stack:
        report = _reported(placed, task, stack)
        if placed.rests is not None:
            counted = F.lit(1).cast("bigint")
            more = _kept(stack, placed.rests(report).withColumns({"rows": counted, "refused": counted}))
            report = report.unionByName(more, allowMissingColumns=True)
        found = report.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in COUNTS)).first()
        assert found is not None, "an aggregate has a row"
        if refused is not None:
            mode = "append" if to_add else "overwrite"
            write_table(report.where("reason is not null").select(*REFUSED), refused, "parquet", mode)
        repeated = _repeated(report)
        is_dry = task.connection is None
        kinds = refused_kinds(report) if is_dry and found["refused"] else ()
    total, sent, turned_down = found["rows"], 0 if is_dry else found["sent"], found["refused"]
    before = 0 if is_dry else total - sent - turned_down
    return LoadSummary(total, sent, before, turned_down, refused, repeated, kinds, found["bytes"])


def _reported(placed: PlacedRows, task: LoadTask, stack: ExitStack) -> DataFrame:
    """Return the tasks' reports about rows. Copies of files wait until the others are sent."""
    later = [] if task.connection is None else copies(placed.rows, _said(placed), placed.files)
    is_later = F.col("_file").isin(later)
    reports = []
    for rows in [placed.rows.where(~is_later), placed.rows.where(is_later)] if later else [placed.rows]:
        reports.append(_kept(stack, rows.mapInArrow(task, report_schema(placed.fields))))
        if later:
            reports[-1].count()  # no task of the next ones begins before
    return reduce(DataFrame.unionByName, reports)


def _said(placed: PlacedRows) -> list[str]:
    """Return the columns that determine a row's content, regardless of its place."""
    return [*(field.name for field in placed.fields), *({WHY} & set(placed.rows.columns))]


def _kept(stack: ExitStack, table: DataFrame) -> DataFrame:
    """Return a table that is kept on disk until the stack ends."""
    kept = table.persist(StorageLevel.DISK_ONLY)
    stack.callback(kept.unpersist)
    return kept


def _repeated(report: DataFrame) -> int:
    """Return the number of rows with the id of another row, not counting one row for each id."""
    ids = report.select(F.explode("ids").alias("id")).groupBy("id").agg((F.count("*") - 1).alias("more"))
    found = ids.agg(F.coalesce(F.sum("more"), F.lit(0)).alias("repeated")).first()
    assert found is not None, "an aggregate has a row"
    return int(found["repeated"])


def _nothing(field: StructField) -> Column:
    return F.lit(None).cast(field.dataType).alias(field.name)
