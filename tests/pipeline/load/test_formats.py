"""Formats of tables: each row of Parquet, CSV, JSON lines and Delta is one command that workers accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.loading import AT, PARTITIONS, Load, commands, parquet

from light_scheduler.errors import JobError
from light_scheduler.pipeline.load import LoadSummary
from light_scheduler.testing import Kafka
from light_scheduler.wire import partition_for

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


def test_each_row_of_a_parquet_table_is_a_command_that_workers_accept(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    count = 100
    table = parquet(
        tmp_path / "table.parquet",
        id=[f"id-{number:03}" for number in range(count)],
        key=[b"key-%d" % (number % 7) for number in range(count)],
        at=pa.array([(AT + number) * 1_000 for number in range(count)], pa.timestamp("us", "UTC")),
        target_topic=["reminders"] * count,
        payload=pa.array([bytes([number, 0, 255]) for number in range(count)], pa.binary()),
        headers=pa.array([[("trace", b"\x00"), ("none", None)]] * count, pa.map_(pa.string(), pa.binary())),
        labels=pa.array([[("team", "billing")]] * count, pa.map_(pa.string(), pa.string())),
        priority=pa.array([5] * count, pa.int32()),
        paused=[number == 3 for number in range(count)],
    )
    assert load(table) == LoadSummary(count, count, 0, 0, None)
    for number, command in enumerate(commands(kafka, topic)):
        assert command.id == f"id-{number:03}"
        assert command.key == b"key-%d" % (number % 7)
        assert command.timing.at == AT + number  # type: ignore[union-attr]
        assert command.target.topic == "reminders"
        assert command.payload == bytes([number, 0, 255])
        assert command.headers == [("trace", b"\x00"), ("none", None)]
        assert command.labels == {"team": "billing"}
        assert command.priority == 5
        assert command.paused is (number == 3)
        assert command.partition == partition_for(command.key, PARTITIONS)


def test_timestamps_in_nanoseconds_are_an_error_with_what_to_do(load: Load, tmp_path: Path) -> None:
    at = pa.array([AT * 1_000_000], pa.timestamp("ns", "UTC"))
    with pytest.raises(JobError, match=r"TIMESTAMP\(NANOS.* write them in microseconds, as with to_parquet"):
        load(parquet(tmp_path / "pandas.parquet", id=["a"], at=at))


@pytest.mark.soak
def test_each_file_has_a_task_of_its_own_however_small(load: Load, tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    for name in ("a", "b", "c"):
        parquet(tmp_path / "table" / f"{name}.parquet", id=[name, ""], at=[AT, AT])
    refused = tmp_path / "refused"
    assert load(tmp_path / "table", constants={"target-topic": "t"}, refused=str(refused)).refused == 3
    assert len(list(refused.glob("*.parquet"))) == 3, "a task writes a file"


def test_csv_has_text_in_quotes_over_several_lines_and_nulls(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(
        "id,at,payload,headers,labels\n"
        f'a,{AT},"two\nlines, ""quoted""","{{""kind"": ""x""}}","team=billing,kind=r"\n'
        "b,2030-01-01T09:00:00+01:00,,,\n"
        f'c,{AT},"",,\n'
    )
    assert load(table, format="csv", constants={"target-topic": "reminders"}).sent == 3
    first, second, third = commands(kafka, topic)
    assert first.payload == b'two\nlines, "quoted"'
    assert first.headers == [("kind", b"x")]
    assert first.labels == {"team": "billing", "kind": "r"}
    assert (second.payload, third.payload) == (None, b"")


def test_json_lines_may_have_objects_for_headers_and_labels(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    rows = [
        {"id": "a", "every": "15m", "target-topic": "t", "payload-base64": "AP8=", "headers": {"x": "1"}},
        {"id": "b", "cron": "0 9 * * *", "timezone": "Europe/Berlin", "target-topic": "t", "labels": {"k": "v"}},
    ]
    table = tmp_path / "table.json"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert load(table, format="json").sent == 2
    first, second = commands(kafka, topic)
    assert (first.payload, first.headers, first.labels) == (b"\x00\xff", [("x", b"1")], None)
    assert (second.payload, second.headers, second.labels) == (None, [], {"k": "v"})


@pytest.mark.parametrize("options", [{}, {"reading": {"multiLine": "false"}, "ignored": ("remark",)}])
@pytest.mark.soak
def test_a_csv_row_whose_text_has_a_comma_without_quotes_is_not_cut_off(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path, options: dict[str, Any]
) -> None:
    table = tmp_path / "table.csv"
    remark = ("remark,", ",") if "ignored" in options else ("", "")
    table.write_text(f"{remark[0]}id,payload\n{remark[1]}a,Hello\n{remark[1]}b,Hello, world\n")
    options = {"format": "csv", "constants": {"target-topic": "t"}, **options}
    with pytest.raises(Exception, match=r"Malformed records .*b,Hello"):
        load(table, **options)
    assert commands(kafka, topic) == []
    reading = {**options.get("reading", {}), "mode": "DROPMALFORMED"}
    assert load(table, **{**options, "reading": reading}).sent == 1


def test_a_line_that_is_no_json_is_no_row_of_nulls(load: Load, kafka: Kafka, topic: str, tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    table.write_text('{"id": "a", "payload": "x"}\n{"id": "b", payload\n')
    with pytest.raises(Exception, match="Malformed records"):
        load(table, format="json", constants={"target-topic": "t"})
    assert commands(kafka, topic) == []


@pytest.mark.soak
@pytest.mark.usefixtures("compiled_plans")
def test_delta_tables_can_be_loaded(spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path) -> None:
    table = tmp_path / "table"
    rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", f"{AT} + id at", "'x' payload")
    rows.write.format("delta").save(str(table))
    assert load(table, format="delta").sent == 10
    assert load(table, format="delta").sent == 0
    assert [command.id for command in commands(kafka, topic)] == [str(number) for number in range(10)]


def test_a_row_without_key_has_its_id_for_one(load: Load, kafka: Kafka, topic: str, tmp_path: Path) -> None:
    load(parquet(tmp_path / "table.parquet", id=["a"], target_topic=["t"], payload=["x"]))
    assert [(command.id, command.key) for command in commands(kafka, topic)] == [("a", b"a")]


@pytest.mark.soak
def test_a_row_without_id_and_key_has_one_made_of_its_content(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    rows = {"target_topic": ["t"] * 3, "at": [AT] * 3, "payload": ["x", "y", "x"]}
    load(parquet(tmp_path / "one.parquet", **rows))
    load(parquet(tmp_path / "same-again.parquet", **rows), name=f"{topic}-other")
    found = commands(kafka, topic)
    assert len(found) == 6
    assert len({command.id for command in found}) == len({command.payload for command in found}) == 2


def test_a_null_payload_without_a_trigger_is_a_tombstone_to_deliver_and_not_a_cancel(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    load(parquet(tmp_path / "table.parquet", id=["a"], target_topic=["t"]))
    assert [command.payload for command in commands(kafka, topic)] == [None]
