"""Columns of tables that a load does not take, and those that it would pass over."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.load.columns import Column, columns_of, read_rows
from light_scheduler.pipeline.load.csv_headers import comparing_headers
from light_scheduler.pipeline.load.later_files import can_be_checked, new_names


def struct(**fields: object) -> StructType:
    return StructType([StructField(name, type) for name, type in fields.items()])  # type: ignore[arg-type]


def test_a_timestamp_without_a_time_zone_is_refused_with_what_to_do() -> None:
    with pytest.raises(JobError, match=r"at cannot be timestamp_ntz, .* cast it to timestamp.*inferTimestampNTZ"):
        columns_of(struct(id=StringType(), at=TimestampNTZType()), (), ())
    assert len(columns_of(struct(id=StringType(), at=TimestampType()), (), ())) == 2


@pytest.mark.parametrize(
    "cells", [["True", "FALSE", "true", None], [True, False, True, None]], ids=["as pandas writes CSV", "booleans"]
)
def test_paused_is_read_in_any_letter_case(cells: list[object]) -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["a", "b", "c", "d"], "paused": cells, "labels": ["team=A"] * 4})
    rows = read_rows(batch, [Column(name, name) for name in ("id", "paused", "labels")])
    assert dict(rows.fields) == {
        "schedule-id": [b"a", b"b", b"c", b"d"],
        "schedule-paused": [b"true", b"false", b"true", None],
        "schedule-labels": [b"team=A"] * 4,
    }


@pytest.mark.parametrize(
    ("found", "new"),
    [
        (struct(id=StringType(), at=StringType()), []),
        (struct(ID=StringType()), []),
        (struct(), []),
        (struct(id=StringType(), payload=StringType()), ["payload"]),
        (struct(headers=struct(x=StringType(), y=StringType())), ["headers.y"]),
        (struct(pairs=ArrayType(struct(key=StringType(), more=StringType()))), ["pairs.more"]),
        (struct(labels=MapType(StringType(), StringType())), []),
        (struct(labels=struct(team=StringType())), []),
        (struct(id=struct(x=StringType())), []),
    ],
    ids=str,
)
def test_columns_and_fields_in_them_are_new_if_no_earlier_file_had_them(found: StructType, new: list[str]) -> None:
    known = struct(
        id=StringType(),
        at=LongType(),
        headers=struct(x=StringType()),
        pairs=ArrayType(struct(key=StringType())),
        labels=MapType(StringType(), StringType()),
    )
    assert new_names(known, found, folds=True) == new


@pytest.mark.parametrize(("folds", "new"), [(True, []), (False, ["Payload", "headers.Trace"])])
def test_names_that_differ_in_case_are_new_where_a_reader_tells_them_apart(folds: bool, new: list[str]) -> None:
    known = struct(payload=StringType(), headers=struct(trace=StringType()))
    found = struct(Payload=StringType(), headers=struct(Trace=StringType()))
    assert new_names(known, found, folds=folds) == new


@pytest.mark.parametrize(
    ("table", "format", "reading", "can"),
    [
        ("/a", "parquet", {}, True),
        ("/a", "json", {"mode": "PERMISSIVE"}, True),
        ("/a", "parquet", {"MergeSchema": "false"}, False),
        ("/a", "csv", {}, False),
        ("table:a", "parquet", {}, False),
    ],
)
def test_columns_of_later_files_are_compared_where_the_first_ones_are_those_of_all_files(
    table: str, format: str, reading: dict[str, str], can: bool
) -> None:
    assert can_be_checked(table, format, reading) is can


@pytest.mark.parametrize(
    ("format", "reading", "columns", "is_compared"),
    [
        ("csv", {}, ["id", "at"], True),
        ("csv", {"sep": ";"}, ["id", "at"], True),
        ("csv", {"EnforceSchema": "true"}, ["id", "at"], False),
        ("csv", {}, ["_c0", "id"], False),
        ("csv", {}, ["_count", "id"], True),
        ("csv", {}, ["id", "note1", "note2"], False),
        ("csv", {}, ["id", "note1", "other"], True),
        ("json", {}, ["id", "at"], False),
    ],
)
def test_headers_of_csv_files_are_compared_unless_names_are_made_up(
    format: str, reading: dict[str, str], columns: list[str], is_compared: bool
) -> None:
    assert comparing_headers(format, reading, columns) == ({"enforceSchema": "false"} if is_compared else {})
