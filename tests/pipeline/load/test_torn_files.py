"""Parquet files that are not whole: a load stops at them with their name, and goes on when they are mended."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from support.cases import by_day
from support.loading import AT, Load, going_on

from light_scheduler.cli.pipeline.running import reason_of

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.soak]


def put(path: Path, *ids: str, change: Callable[[bytes], bytes] = lambda content: content) -> None:
    """Put a file into a folder when its content is complete."""
    table = pa.table({"id": ids, "at": [str(AT)] * len(ids), "target_topic": ["t"] * len(ids)})
    aside = path.parent.parent / "aside"
    pq.write_table(table, aside)
    aside.write_bytes(change(aside.read_bytes()))
    aside.rename(path)


def torn(content: bytes) -> bytes:
    return content[: len(content) // 2]


def emptied(_: bytes) -> bytes:
    return b""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    put(folder / "b.parquet", "b-1")
    return folder


def reason_why(load: Load, folder: Path, **options: Any) -> str:
    """Return what a user is told of a load that fails."""
    with pytest.raises((PySparkException, Py4JError)) as failed:
        load(folder, **options)
    return reason_of(failed.value)


@pytest.mark.parametrize("change", [torn, emptied])
@pytest.mark.parametrize("name", by_day(1, ["z.parquet", "a.parquet"]), ids=["last", "first"])
def test_a_load_stops_at_a_file_without_its_end_and_names_it(
    load: Load, folder: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    put(folder / name, "torn-1", change=change)
    assert re.match(rf"file:/\S*/{name} is no whole Parquet file", reason_why(load, folder))


def test_a_load_that_goes_on_stops_too_and_sends_all_rows_once_when_the_file_is_whole(
    load: Load, sent: Callable[[int], None], folder: Path, tmp_path: Path
) -> None:
    options = {"refused": str(tmp_path / "refused"), "checkpoint": str(tmp_path / "checkpoint")}
    assert load(folder).sent == 1
    put(folder / "z.parquet", "torn-1", "torn-2", change=torn)
    assert re.match(r"file:/\S*/z.parquet is no whole Parquet file", reason_why(load, folder, every_s=1.0, **options))
    put(folder / "z.parquet", "torn-1", "torn-2")
    with going_on(load, folder, **options):
        sent(3)
