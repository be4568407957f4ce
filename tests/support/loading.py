"""Loads of tables: who runs them, tables to load, and what they sent and refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from light_scheduler.model import ScheduleCommand
from light_scheduler.pipeline.load import LoadSummary
from light_scheduler.pipeline.load.marks import Marks
from light_scheduler.testing import Kafka
from light_scheduler.wire.native import NATIVE

from .kafka_records import decided_records

PARTITIONS = 3
AT, PASSED = 1_900_000_000_000, 1_700_000_000_000

Load = Callable[..., LoadSummary]


def marks_of(topic: str) -> str:
    return f"{topic}-loads"


def commands(kafka: Kafka, topic: str) -> list[ScheduleCommand]:
    """Return the commands of the topic as a worker reads them, ordered by id."""
    decoded = [NATIVE.decode(record) for record in decided_records(kafka, topic)]
    assert all(isinstance(command, ScheduleCommand) for command in decoded)
    return sorted(decoded, key=lambda command: command.id)  # type: ignore[arg-type]


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def put(path: Path, content: str | bytes) -> None:
    """Put a file into a folder when its content is complete: a load that goes on reads it as it finds it, and once."""
    aside = path.parent.with_name("aside")
    aside.write_bytes(content.encode() if isinstance(content, str) else content)
    aside.rename(path)


@contextmanager
def killed_before_a_version_is_marked(
    monkeypatch: pytest.MonkeyPatch, written: Callable[[Any], Any] = lambda mark: mark
) -> Iterator[None]:
    """Have the load in the block write one mark, as `written` has it, and end when it is about to write another."""
    write, keys = Marks.write, list[bytes]()

    def failing(self: Marks, key: bytes, mark: Any) -> None:
        if keys:
            raise KeyboardInterrupt
        keys.append(key)
        write(self, key, written(mark))

    with monkeypatch.context() as patch:
        patch.setattr(Marks, "write", failing)
        with pytest.raises(KeyboardInterrupt):
            yield


def refused(spark: SparkSession, path: Path) -> list[tuple[int, str, str]]:
    rows = spark.read.parquet(str(path)).orderBy("block", "row").collect()
    return [(row.row, row.field, row.reason) for row in rows]


@contextmanager
def going_on(load: Load, table: Path, **options: Any) -> Iterator[list[LoadSummary]]:
    """Load within the block; its summary is in the list when the block has ended. Fails of what the load fails of."""
    stop, summaries = threading.Event(), list[LoadSummary]()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(load, table, every_s=1.0, stop=stop, **options)
        try:
            yield summaries
        finally:
            stop.set()
            summaries.append(running.result())


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Do something beside what the block does. Fails of what that fails of."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(action)
        try:
            yield
        finally:
            done.result()


VECTORS = pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(False, id="files are rewritten", marks=pytest.mark.every_case),
        pytest.param(True, id="rows are marked in deletion vectors"),
    ],
)
