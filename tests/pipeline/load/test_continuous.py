"""A load that goes on: each row once, of files and of versions, also if it begins anew, until it is to stop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from support.cases import by_day
from support.loading import AT, Load, going_on, put

from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.load import LoadOptions, LoadSummary, following, main, streaming
from light_scheduler.pipeline.load.following import follow_files, stream_of
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.soak]


@pytest.fixture
def load(spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path) -> Load:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    create_topic(kafka.bootstrap_servers, f"{prefix}-loads", 1, configs={"cleanup.policy": "compact"})

    def load(table: Path, **options: Any) -> LoadSummary:
        given = {
            "cluster": Cluster(kafka.bootstrap_servers),
            "commands_topic": prefix,
            "marks_topic": f"{prefix}-loads",
            "refused": str(tmp_path / "refused"),
            **options,
        }
        return main(spark, LoadOptions(table=str(table), **given))

    return load


def rows(path: Path, *ids: str) -> None:
    """Put a file with rows into a folder when it is complete."""
    at, aside = [str(AT) if id else "soon" for id in ids], path.parent.with_name("aside")
    pq.write_table(pa.table({"id": ids, "at": at, "target_topic": ["t"] * len(ids), "payload": ids}), aside)
    aside.rename(path)


def test_files_are_loaded_as_they_come_each_row_once(
    spark: SparkSession, load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    rows(folder / "a.parquet", "a-1", "a-2")
    assert load(folder).sent == 2
    with going_on(load, folder) as first:
        rows(folder / "b.parquet", "b-1", "", "b-2")
        sent(4)
    assert (first[0].sent, first[0].sent_before, first[0].refused) == (2, 2, 1)
    rows(folder / "c.parquet", "c-1")
    with going_on(load, folder) as second:
        sent(5)
    assert (second[0].sent, second[0].sent_before) == (1, 4)
    assert {row.reason is not None for row in spark.read.parquet(str(tmp_path / "refused")).collect()} == {True}


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.every_case
def test_of_files_with_the_same_rows_one_is_sent(
    load: Load, sent: Callable[[int], None], tmp_path: Path, goes_on: bool
) -> None:
    folder, count = tmp_path / "rows", 20_000  # so many that two tasks are at work at the same time
    folder.mkdir()
    for number in range(2):
        rows(folder / f"a copy%{number}.parquet", *(f"a-{row}" for row in range(count)))
    rows(folder / "another.parquet", "b-1")
    if goes_on:
        with going_on(load, folder) as summaries:
            sent(count + 1)
        summary = summaries[0]
    else:
        summary = load(folder)
        sent(count + 1)
    assert (summary.rows, summary.sent, summary.sent_before) == (2 * count + 1, count + 1, count)


HEADER = "id,at,target_topic,payload\n"
MALFORMED = {
    "csv": (HEADER + f"a-1,{AT},t,x\n", HEADER + f"b-1,{AT},t,x\nb-2,{AT},t,Hello, world\nb-3,{AT},t,x\n"),
    "json": (
        f'{{"id": "a-1", "at": {AT}, "target_topic": "t", "payload": "x"}}\n',
        f'{{"id": "b-1", "at": {AT}, "target_topic": "t"}}\n{{"id": "b-2", "at": {AT}, "target_topic": "t", "payload\n'
        f'{{"id": "b-3", "at": {AT}, "target_topic": "t"}}\n',
    ),
}
"""By format, a file, and one whose second row is malformed."""


@pytest.mark.parametrize("is_there_at_the_start", [False, pytest.param(True, marks=pytest.mark.every_case)])
@pytest.mark.parametrize("format", by_day(1, ["json", "csv"]))
def test_a_malformed_row_is_refused_and_the_load_goes_on(
    spark: SparkSession,
    load: Load,
    sent: Callable[[int], None],
    tmp_path: Path,
    format: str,
    is_there_at_the_start: bool,
) -> None:
    folder, (good, bad) = tmp_path / "rows", MALFORMED[format]
    folder.mkdir()
    (folder / "a").write_text(good)
    if is_there_at_the_start:
        (folder / "b").write_text(bad)
    with going_on(load, folder, format=format) as summaries:
        if not is_there_at_the_start:
            sent(1)
            put(folder / "b", bad)
        sent(3)
        put(folder / "c", good.replace("a-1", "c-1"))
        sent(4)
    assert (summaries[0].sent, summaries[0].refused) == (4, 1)
    (refused,) = spark.read.parquet(str(tmp_path / "refused")).collect()
    line = bad.splitlines()[-2]
    assert (refused.row, refused.field, refused.reason) == (2, "row", f"is malformed: {line}")
    assert Path(refused.file).name == "b"
    assert refused.content is None, "what could be read of it is no schedule"

    again = load(tmp_path / "refused", refused=str(tmp_path / "refused-again"))
    assert (again.sent, again.refused) == (0, 1)
    (refused_again,) = spark.read.parquet(str(tmp_path / "refused-again")).collect()
    assert refused_again.reason == refused.reason


UNREADABLE = [b'{"id": "\xff\xfe"}', b'["\xff"] {"id": "x"}', b'{"id": ' + b"[" * 3_000, b"\x00\x00", b"]"]
"""Lines that are no text, or no JSON that a parser takes."""


@pytest.mark.every_case
def test_lines_of_any_bytes_are_refused_and_the_load_goes_on(
    load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    (folder := tmp_path / "rows").mkdir()
    good = f'{{"id": "a-1", "at": {AT}, "target_topic": "t"}}\n'.encode()
    (folder / "a").write_bytes(good)
    with going_on(load, folder, format="json") as summaries:
        sent(1)
        put(folder / "b", b"\n".join([*UNREADABLE, good.replace(b"a-1", b"b-1")]))
        sent(2)
    assert (summaries[0].sent, summaries[0].refused) == (2, len(UNREADABLE))


def test_a_load_of_which_no_row_can_be_read_says_what_to_do(load: Load, tmp_path: Path) -> None:
    (folder := tmp_path / "rows").mkdir()
    (folder / "a").write_text('{"id": \n')
    with pytest.raises(JobError, match="rows has no columns to load: put a file there"):
        load(folder, format="json", every_s=1.0)


@pytest.mark.every_case
def test_a_malformed_row_is_sent_once_it_is_mended_even_if_all_cells_were_read(
    load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a").write_text(HEADER + f"a-1,{AT},t,Hello, world\n")
    (folder / "b").write_text(HEADER + f"b-1,{AT},t,x\n")
    with going_on(load, folder, format="csv"):
        sent(1)
    (folder / "a").write_text(HEADER + f"a-1,{AT},t,Hello\n")
    with going_on(load, folder, format="csv"):
        sent(2)


def test_a_load_that_goes_on_does_with_malformed_rows_what_it_is_told(
    load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a").write_text(MALFORMED["csv"][1])
    with going_on(load, folder, format="csv", reading={"mode": "DROPMALFORMED"}) as summaries:
        sent(2)
    assert (summaries[0].rows, summaries[0].refused) == (2, 0)


@contextmanager
def stopped_after_one_batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a load in the block be told to stop while it loads its first micro-batch."""

    def follow(
        files: DataFrame,
        load: Callable[[DataFrame, list[str]], None],
        every_s: float,
        checkpoint: str | None,
        stop: threading.Event,
    ) -> None:
        def load_last(rows: DataFrame, names: list[str]) -> None:
            load(rows, names)
            stop.set()

        follow_files(files, load_last, every_s, checkpoint, stop)

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "follow_files", follow)
        yield


@pytest.mark.every_case
def test_what_was_not_loaded_at_a_stop_is_loaded_by_the_next_one_however_old_the_files_are(
    load: Load, sent: Callable[[int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, options = tmp_path / "rows", {"checkpoint": str(tmp_path / "checkpoint")}
    folder.mkdir()
    for number in range(5):
        rows(folder / f"{number}.parquet", f"a-{number}")
    os.utime(folder / "4.parquet", (1_000_000_000, 1_000_000_000))
    with stopped_after_one_batch(monkeypatch):
        first = load(folder, reading={"maxFilesPerTrigger": "1"}, every_s=1.0, **options)
    assert first.sent == 1
    with going_on(load, folder, **options):
        sent(5)


def test_a_stop_between_two_batches_is_no_failure(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_LOOK_EVERY_S", 60)  # the stream ends while its end is waited for
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(2):
        rows(folder / f"{number}.parquet", f"a-{number}")
    stop, loaded = threading.Event(), list[int]()

    def load_one(files: DataFrame, _: list[str]) -> None:
        loaded.append(files.count())
        stop.set()

    schema = spark.read.parquet(str(folder)).schema
    files = stream_of(spark, str(folder), "parquet", {"maxFilesPerTrigger": "1"}, schema)
    follow_files(files, load_one, every_s=0, checkpoint=None, stop=stop)
    assert loaded == [1]


@pytest.mark.every_case
def test_versions_of_a_delta_table_are_loaded_as_they_come(
    spark: SparkSession, load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    table = str(tmp_path / "table")

    def add(*ids: str) -> None:
        made = [(id, str(AT), "t") for id in ids]
        spark.createDataFrame(made, "id string, at string, target_topic string").write.format("delta").mode(
            "append"
        ).save(table)

    add("a-1", "a-2")
    with going_on(load, Path(table), format="delta") as summaries:
        sent(2)
        add("b-1")
        sent(3)
        spark.sql(f"OPTIMIZE delta.`{table}`")
        add("c-1")
        sent(4)
    assert (summaries[0].rows, summaries[0].sent) == (4, 4)
