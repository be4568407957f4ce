"""`load`: each row of a table is one command, once, or is refused with its reason."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from support.kafka_records import committed_records

from light_scheduler.engine.limits import Limits
from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.model import ScheduleCommand
from light_scheduler.pipeline.job import Cluster, configured
from light_scheduler.pipeline.load import LoadOptions, LoadSummary, main, versions
from light_scheduler.pipeline.load.marks import Marks
from light_scheduler.pipeline.load.versions import TableMark, TableVersion
from light_scheduler.testing import Kafka
from light_scheduler.wire import partition_for
from light_scheduler.wire.native import NATIVE

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

PARTITIONS = 3
AT, PASSED = 1_900_000_000_000, 1_700_000_000_000

Load = Callable[..., LoadSummary]


@pytest.fixture
def topic(kafka: Kafka, prefix: str) -> str:
    create_topic(kafka.bootstrap_servers, prefix, PARTITIONS)
    create_topic(kafka.bootstrap_servers, marks_of(prefix), 1, configs={"cleanup.policy": "compact"})
    return prefix


@pytest.fixture
def load(spark: SparkSession, kafka: Kafka, topic: str) -> Load:
    """Load a table into the topic, with options as keywords."""

    def load(table: Path, **options: Any) -> LoadSummary:
        given = {
            "cluster": Cluster(kafka.bootstrap_servers),
            "commands_topic": topic,
            "marks_topic": marks_of(topic),
            **options,
        }
        return main(spark, LoadOptions(table=str(table), **given))

    return load


def marks_of(topic: str) -> str:
    return f"{topic}-loads"


def commands(kafka: Kafka, topic: str) -> list[ScheduleCommand]:
    """Return the commands of the topic as a worker reads them, ordered by id."""
    decoded = [NATIVE.decode(record) for record in committed_records(kafka, topic)]
    assert all(isinstance(command, ScheduleCommand) for command in decoded)
    return sorted(decoded, key=lambda command: command.id)  # type: ignore[arg-type]


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def as_before(mark: Any) -> Any:
    """Return a mark of a table as older versions wrote it."""
    return TableMark(mark.loaded, mark.begun, mark.commit)


def refused(spark: SparkSession, path: Path) -> list[tuple[int, str, str]]:
    rows = spark.read.parquet(str(path)).orderBy("block", "row").collect()
    return [(row.row, row.field, row.reason) for row in rows]


class TestFormats:
    def test_each_row_of_a_parquet_table_is_a_command_that_workers_accept(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
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

    @pytest.mark.soak
    def test_each_file_has_a_task_of_its_own_however_small(self, load: Load, tmp_path: Path) -> None:
        (tmp_path / "table").mkdir()
        for name in ("a", "b", "c"):
            parquet(tmp_path / "table" / f"{name}.parquet", id=[name, ""], at=[AT, AT])
        refused = tmp_path / "refused"
        assert load(tmp_path / "table", constants={"target-topic": "t"}, refused=str(refused)).refused == 3
        assert len(list(refused.glob("*.parquet"))) == 3, "a task writes a file"

    def test_csv_has_text_in_quotes_over_several_lines_and_nulls(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
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
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
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
    def test_a_csv_row_whose_text_has_a_comma_without_quotes_is_not_cut_off(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path, options: dict[str, Any]
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

    def test_a_line_that_is_no_json_is_no_row_of_nulls(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "table.json"
        table.write_text('{"id": "a", "payload": "x"}\n{"id": "b", payload\n')
        with pytest.raises(Exception, match="Malformed records"):
            load(table, format="json", constants={"target-topic": "t"})
        assert commands(kafka, topic) == []

    @pytest.mark.usefixtures("compiled_plans")
    def test_delta_tables_can_be_loaded(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "table"
        rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", f"{AT} + id at", "'x' payload")
        rows.write.format("delta").save(str(table))
        assert load(table, format="delta").sent == 10
        assert load(table, format="delta").sent == 0
        assert [command.id for command in commands(kafka, topic)] == [str(number) for number in range(10)]


class TestIds:
    def test_a_row_without_key_has_its_id_for_one(self, load: Load, kafka: Kafka, topic: str, tmp_path: Path) -> None:
        load(parquet(tmp_path / "table.parquet", id=["a"], target_topic=["t"], payload=["x"]))
        assert [(command.id, command.key) for command in commands(kafka, topic)] == [("a", b"a")]

    def test_a_row_without_id_and_key_has_one_made_of_its_content(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        rows = {"target_topic": ["t"] * 3, "at": [AT] * 3, "payload": ["x", "y", "x"]}
        load(parquet(tmp_path / "one.parquet", **rows))
        load(parquet(tmp_path / "same-again.parquet", **rows), name=f"{topic}-other")
        found = commands(kafka, topic)
        assert len(found) == 6
        assert len({command.id for command in found}) == len({command.payload for command in found}) == 2

    def test_a_null_payload_without_a_trigger_is_a_tombstone_to_deliver_and_not_a_cancel(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        load(parquet(tmp_path / "table.parquet", id=["a"], target_topic=["t"]))
        assert [command.payload for command in commands(kafka, topic)] == [None]


class TestRefusals:
    def test_refused_rows_are_in_a_table_with_field_and_reason_and_the_others_are_sent(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = parquet(
            tmp_path / "table.parquet",
            id=["good", "seconds", "cron", "topic", "header", "labels", "big", "past", "internal"],
            at=["1900000000000", "1900000000", None, *["1900000000000"] * 4, "1000000000000", "1900000000000"],
            cron=[None, None, "61 * * * *", *[None] * 6],
            target_topic=["t", "t", "t", "a topic", "t", "t", "t", "t", "mine"],
            headers=[None] * 4 + ['{"schedule-id": "x"}'] + [None] * 4,
            labels=[None] * 5 + ["team"] + [None] * 3,
            on_past=[None] * 7 + ["reject", None],
            payload=["x"] * 6 + ["x" * 101, "x", "x"],
        )
        limits = Limits(100, 100, frozenset({"mine"}))
        summary = load(table, refused=str(tmp_path / "refused"), limits=limits)
        assert (summary.rows, summary.sent, summary.refused, summary.failed) == (9, 1, 8, True)
        assert [command.id for command in commands(kafka, topic)] == ["good"]
        found = refused(spark, tmp_path / "refused")
        assert [(row, field) for row, field, _ in found] == [
            (2, "at"),
            (3, "cron"),
            (4, "target-topic"),
            (5, "headers"),
            (6, "labels"),
            (7, "payload"),
            (8, "at"),
            (9, "target-topic"),
        ]
        assert "looks like seconds" in found[0][2]
        assert load(table, refused=str(tmp_path / "refused"), limits=limits).refused == 8
        assert refused(spark, tmp_path / "refused") == found

    def test_a_row_whose_time_is_null_is_not_delivered_at_once(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = parquet(
            tmp_path / "table.parquet",
            id=["at", "none", "cron", "empty"],
            at=[str(AT), None, None, ""],
            cron=[None, None, "0 9 * * *", None],
            target_topic=["t"] * 4,
            payload=["x"] * 4,
        )
        summary = load(table, refused=str(tmp_path / "refused"))
        assert (summary.sent, summary.refused) == (2, 2)
        assert [command.id for command in commands(kafka, topic)] == ["at", "cron"]
        reasons = {row: (field, reason) for row, field, reason in refused(spark, tmp_path / "refused")}
        assert reasons[2] == ("at", "at, cron are all null: give a time, or `after` 0 to deliver at once")
        assert reasons[4][0] == "at"

    def test_refused_rows_keep_their_types_and_can_be_loaded_themselves(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        rows: dict[str, Any] = {
            "id": ["a", "b", "c"],
            "at": pa.array([AT * 1_000] * 3, pa.timestamp("us", "UTC")),
            "target_topic": ["t"] * 3,
            "payload": pa.array([b"\x00\xff", b"\x00\xff" * 60, None], pa.binary()),
            "labels": pa.array([None, [("k", "v")], None], pa.map_(pa.string(), pa.string())),
        }
        table = parquet(tmp_path / "table.parquet", **rows)
        assert load(table, limits=Limits(100, 100), refused=str(tmp_path / "refused")).refused == 1
        (row,) = spark.read.parquet(str(tmp_path / "refused")).select("content.*").collect()
        assert (row.id, bytes(row.payload), row.labels) == ("b", b"\x00\xff" * 60, {"k": "v"})
        assert load(tmp_path / "refused", limits=Limits(200, 100)).sent == 1
        assert [(command.id, command.labels) for command in commands(kafka, topic)] == [
            ("a", None),
            ("b", {"k": "v"}),
            ("c", None),
        ]

    def test_rows_that_repeat_an_id_are_counted_and_told(self, load: Load, tmp_path: Path) -> None:
        table = parquet(
            tmp_path / "table.parquet",
            id=["a", "b", "a", "a", ""],
            tenant=[None, None, None, "acme", None],
            target_topic=["t"] * 5,
        )
        summary = load(table, dry_run=True)
        assert (summary.rows, summary.refused, summary.repeated_ids) == (5, 1, 1)
        assert "1 rows have the id of another row" in summary.lines()[1]
        assert load(table).repeated_ids == 1

    def test_a_dry_run_shows_the_first_rows_of_each_kind_of_refusal(self, load: Load, tmp_path: Path) -> None:
        at = [f"soon-{number}" if number < 12 else str(AT) for number in range(15)]
        ttl = ["1h"] * 13 + ["x", "y"]
        table = parquet(
            tmp_path / "a table.parquet", id=list(map(str, range(15))), at=at, ttl=ttl, target_topic=["t"] * 15
        )
        summary = load(table, dry_run=True)
        assert (summary.rows, summary.refused) == (15, 14)
        assert [(kind.field, kind.rows, [row.row for row in kind.first]) for kind in summary.kinds] == [
            ("at", 12, [*range(1, 11)]),
            ("ttl", 2, [14, 15]),
        ]
        lines = summary.lines()
        assert lines[1] == "12 rows refused because of at, the first 10 of them:"
        assert lines[2].startswith("  row 1 in a table.parquet: ")
        assert "soon-0" in lines[2]

    def test_a_dry_run_sends_nothing(self, load: Load, kafka: Kafka, topic: str, tmp_path: Path) -> None:
        table = parquet(tmp_path / "table.parquet", id=["a", ""], target_topic=["t", "t"], payload=["x", "x"])
        summary = load(table, dry_run=True)
        assert replace(summary, kinds=()) == LoadSummary(2, 0, 0, 1, None)
        assert commands(kafka, topic) == []

    @pytest.mark.parametrize(
        ("columns", "options", "message"),
        [
            ({"target_topc": ["t"]}, {}, "column target_topc is not known; did you mean target-topic"),
            ({"command": ["cancel"]}, {}, "every row is a schedule"),
            ({"at": [1.5]}, {}, "column at cannot be double"),
            ({"priority": [b"1"]}, {}, "column priority cannot be binary"),
            ({"target_topic": ["t"], "target-topic": ["t"]}, {}, "are the same"),
            ({"payload": ["x"], "payload_base64": ["eA=="]}, {}, "give one of them"),
            ({"id": ["a"]}, {"constants": {"colour": "red"}}, "colour is not known"),
            ({"id": ["a"]}, {"constants": {"id": "b"}}, "set with --set"),
            ({"id": ["a"]}, {"ignored": ("x",)}, "no column x to ignore"),
            ({"id": ["a"]}, {"commands_topic": "not-there"}, "topic not-there cannot be used"),
        ],
    )
    def test_a_table_that_cannot_be_commands_is_refused_by_the_column(
        self,
        spark: SparkSession,
        kafka: Kafka,
        topic: str,
        tmp_path: Path,
        columns: dict[str, Any],
        options: dict[str, Any],
        message: str,
    ) -> None:
        table = parquet(tmp_path / "table.parquet", **columns)
        given = {
            "cluster": Cluster(kafka.bootstrap_servers),
            "commands_topic": topic,
            "marks_topic": marks_of(topic),
            **options,
        }
        with pytest.raises(JobError, match=message):
            main(spark, LoadOptions(table=str(table), **given))


VECTORS = pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(False, id="files are rewritten"),
        pytest.param(True, id="rows are marked in deletion vectors"),
    ],
)
BROADCASTS = [
    pytest.param(versions.MOST_BROADCAST, id="few rows are gone"),
    pytest.param(0, id="many rows are gone", marks=pytest.mark.soak),
]


class TestOnceOnly:
    @pytest.mark.soak
    def test_rows_are_known_by_their_content_wherever_they_are_and_whatever_the_groups_of_the_broker_forget(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        rows = {"id": ["a", "b"], "target_topic": ["t"] * 2, "payload": ["x", None]}
        one = parquet(tmp_path / "one.parquet", **rows)
        assert load(one).sent == 2
        os.utime(one, (1, 1))
        assert load(one) == LoadSummary(2, 0, 2, 0, None)
        copy = parquet(tmp_path / "copy.parquet", **rows, labels=pa.nulls(2, pa.string()))
        assert load(copy) == LoadSummary(2, 0, 2, 0, None)
        csv = tmp_path / "copy.csv"
        csv.write_text("payload,id\nx,a\n,b\n")
        assert load(csv, format="csv", constants={"target-topic": "t"}).sent == 2, "other constants, other commands"
        assert load(parquet(one, **{**rows, "payload": ["x", "y"]}), sends_past=True).sent == 2, "another content"
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
        assert [name for name in groups if topic in name] == [], "no mark is kept where it would expire"

    @pytest.mark.soak
    def test_a_delta_table_whose_files_are_rewritten_sends_nothing_and_then_only_what_is_added(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "a table"

        def append(*ids: str) -> None:
            rows = spark.createDataFrame([(id,) for id in ids], "id string")
            rows.selectExpr("id", "'t' target_topic", "'x' payload").coalesce(1).write.format("delta").mode(
                "append"
            ).save(str(table))

        for ids in (("a", "b"), ("c",), ("d", "e")):
            append(*ids)
        assert load(table, format="delta").sent == 5
        spark.sql(f"OPTIMIZE delta.`{table}`")
        assert load(table, format="delta") == LoadSummary(0, 0, 0, 0, None)
        append("f")
        append("g", "h")
        spark.sql(f"OPTIMIZE delta.`{table}`")
        append("i")
        assert load(table, format="delta") == LoadSummary(4, 4, 0, 0, None)
        assert load(table, format="delta").sent == 0
        assert [command.id for command in commands(kafka, topic)] == list("abcdefghi")
        assert load(table, format="delta", name=f"{topic}-other").sent == 9

    @pytest.mark.parametrize("broadcast", BROADCASTS)
    @VECTORS
    @pytest.mark.soak
    def test_a_delta_table_whose_rows_change_sends_what_is_new_and_nothing_again(
        self,
        spark: SparkSession,
        load: Load,
        kafka: Kafka,
        topic: str,
        tmp_path: Path,
        vectors: bool,
        broadcast: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(versions, "MOST_BROADCAST", broadcast)
        table = tmp_path / "table"
        at = "timestamp_micros(1900000000000001) at"
        rows = spark.range(100).selectExpr("cast(id as string) id", "'t' target_topic", at, "map('k', 'v') labels")
        rows.coalesce(1).write.format("delta").save(str(table))
        name = f"delta.`{table}`"
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(vectors).lower()}')")
        assert load(table, format="delta").sent == 100
        spark.sql(f"DELETE FROM {name} WHERE id < 20")
        assert load(table, format="delta").sent == 0
        spark.sql(f"UPDATE {name} SET target_topic = 'u' WHERE id in ('30', '31')")
        rows.where("id = '7'").selectExpr("'new' id", "target_topic", "at", "labels").write.format("delta").mode(
            "append"
        ).save(str(table))
        spark.sql(f"OPTIMIZE {name}")
        assert load(table, format="delta").sent == 3
        rows.where("id in ('40', '41')").write.format("delta").mode("overwrite").save(str(table))
        assert load(table, format="delta").sent == 0
        sent = commands(kafka, topic)
        assert len(sent) == 103
        assert [command.id for command in sent if command.target.topic == "u"] == ["30", "31"]

    @pytest.mark.parametrize("broadcast", BROADCASTS)
    @VECTORS
    @pytest.mark.soak
    def test_rows_that_are_written_again_as_they_were_send_nothing_and_those_that_come_back_are_sent(
        self,
        spark: SparkSession,
        load: Load,
        kafka: Kafka,
        topic: str,
        tmp_path: Path,
        vectors: bool,
        broadcast: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(versions, "MOST_BROADCAST", broadcast)
        table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
        rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", "'x' payload", f"'{AT}' at")
        property = "delta.enableDeletionVectors", str(vectors).lower()
        rows.coalesce(1).write.format("delta").option(*property).save(str(table))
        assert load(table, format="delta").sent == 10
        spark.sql(f"UPDATE {name} SET payload = payload WHERE id = '1'")
        assert load(table, format="delta").sent == 0
        source = "SELECT * FROM VALUES ('2', 'x'), ('3', 'y'), ('new', 'x') AS rows(id, payload)"
        spark.sql(
            f"MERGE INTO {name} USING ({source}) AS source ON {name}.id = source.id "
            "WHEN MATCHED THEN UPDATE SET payload = source.payload "
            "WHEN NOT MATCHED THEN INSERT (id, target_topic, payload, at) "
            f"VALUES (source.id, 't', source.payload, '{AT}')"
        )
        assert load(table, format="delta").sent == 2
        spark.sql(f"DELETE FROM {name} WHERE id = '4'")
        assert load(table, format="delta").sent == 0
        spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 0")
        assert load(table, format="delta").sent == 2, "the row that was deleted and the one that was changed"
        assert [command.id for command in commands(kafka, topic)] == sorted(
            [*map(str, range(10)), "3", "3", "4", "new"]
        )

    @VECTORS
    def test_schedules_whose_rows_were_deleted_from_a_delta_table_are_cancelled_once(
        self,
        spark: SparkSession,
        load: Load,
        kafka: Kafka,
        topic: str,
        tmp_path: Path,
        vectors: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        table = tmp_path / "table"

        def append(payload: str, *ids: str) -> None:
            rows = spark.createDataFrame([(id,) for id in ids], "id string")
            columns = "id", "concat('of ', id) key", "if(id = 'b', 'acme', null) tenant", "'t' target_topic"
            rows.selectExpr(*columns, f"'{payload}' payload").coalesce(1).write.format("delta").mode("append").save(
                str(table)
            )

        def changed() -> list[Any]:
            """Return all records after those of the first load."""
            return [each for each in committed_records(kafka, topic) if (each.partition, each.offset) not in before]

        options: dict[str, Any] = {"format": "delta", "cancels_deleted": True}
        append("x", "a", "b", "c", "d", "e")
        append("y", "e")
        property = f"'delta.enableDeletionVectors' = '{str(vectors).lower()}'"
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({property})")
        assert load(table, **options).sent == 6
        homes = {record.key: record.partition for record in committed_records(kafka, topic)}
        before = {(record.partition, record.offset) for record in committed_records(kafka, topic)}
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN ('a', 'b')")
        spark.sql(f"UPDATE delta.`{table}` SET target_topic = 'u' WHERE id = 'c'")
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 'e' AND payload = 'x'")
        write, fails = Marks.write, [False, True]

        def failing(self: Marks, client: Any, key: bytes, mark: Any) -> None:
            if fails and fails.pop(0):
                raise KeyboardInterrupt
            write(self, client, key, mark)

        monkeypatch.setattr(Marks, "write", failing)
        with pytest.raises(KeyboardInterrupt):  # after the cancels, before the version is marked
            load(table, **options)
        summary = load(table, **options)

        assert (summary.sent, summary.cancelled, load(table, **options).cancelled) == (0, 0, 0)
        assert [(record.key, record.partition) for record in changed()].count((b"of c", homes[b"of c"])) == 1
        cancels = [NATIVE.decode(record) for record in changed() if record.value is None]
        assert sorted((each.name, each.tenant, each.id) for each in cancels) == [
            ("cancel", "acme", "b"),
            ("cancel", "default", "a"),
        ]
        assert all(record.partition == homes[record.key or b""] for record in changed())

    def test_files_that_come_back_are_sent_again_though_their_batches_were_save_for_rows_that_have_passed(
        self, spark: SparkSession, load: Load, tmp_path: Path
    ) -> None:
        table, rows = tmp_path / "table", [("ahead", AT), ("passed", PASSED)]
        written = spark.createDataFrame(rows, "id string, at long").repartitionByRange(2, "id").write.format("delta")
        written.save(str(table))
        options: dict[str, Any] = {"format": "delta", "constants": {"target-topic": "t"}}
        assert load(table, **options).sent == 2
        spark.sql(f"DELETE FROM delta.`{table}`")
        assert load(table, **options, cancels_deleted=True).cancelled == 2
        spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")
        summary = load(table, **options, refused=str(tmp_path / "refused"))
        assert (summary.sent, summary.refused) == (1, 1)
        assert load(table, **options) == LoadSummary(0, 0, 0, 0, None)
        whole = {**options, "reading": {"versionAsOf": "2"}, "sends_past": True}
        summary = load(table, **whole)
        assert (summary.sent, summary.sent_before) == (1, 1), "what was sent is known by its content, too"

    @pytest.mark.soak
    def test_rows_that_deletion_vectors_give_back_are_sent_each_time(
        self, spark: SparkSession, load: Load, tmp_path: Path
    ) -> None:
        table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
        rows = spark.createDataFrame([("stays", AT), ("goes", AT)], "id string, at long")
        rows.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(table))
        options: dict[str, Any] = {"format": "delta", "constants": {"target-topic": "t"}}
        assert load(table, **options).sent == 2
        for _ in range(2):
            spark.sql(f"DELETE FROM {name} WHERE id = 'goes'")
            assert load(table, **options, cancels_deleted=True).cancelled == 1
            spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 0")
            assert load(table, **options).sent == 1

    @pytest.mark.soak
    def test_rows_that_have_passed_and_come_back_in_files_that_only_optimize_wrote_are_held_back(
        self, spark: SparkSession, load: Load, tmp_path: Path
    ) -> None:
        table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
        for id, at in (("ahead", AT), ("passed", PASSED)):
            rows = spark.createDataFrame([(id, at)], "id string, at long")
            rows.coalesce(1).write.format("delta").mode("append").save(str(table))
        options: dict[str, Any] = {
            "format": "delta",
            "constants": {"target-topic": "t"},
            "refused": str(tmp_path / "refused"),
        }
        assert load(table, **options).sent == 2
        spark.sql(f"OPTIMIZE {name}")
        spark.sql(f"DELETE FROM {name} WHERE id = 'passed'")
        load(table, **options)
        spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 2")
        summary = load(table, **options)
        assert (summary.sent, summary.refused) == (0, 1)

    @pytest.mark.parametrize("begun_by", ["this version", "an older version"])
    def test_a_load_of_new_versions_that_was_killed_sends_nothing_again_whoever_began_it(
        self,
        spark: SparkSession,
        load: Load,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        begun_by: str,
    ) -> None:
        table = tmp_path / "table"

        def append(id: str) -> None:
            rows = spark.createDataFrame([(id,)], "id string").selectExpr("id", f"{PASSED} at", "'t' target_topic")
            rows.coalesce(1).write.format("delta").mode("append").save(str(table))

        append("a")
        assert load(table, format="delta").sent == 1
        append("b")
        write, fails = Marks.write, [False, True]

        def failing(self: Marks, client: Any, key: bytes, mark: Any) -> None:
            if fails.pop(0):
                raise KeyboardInterrupt
            write(self, client, key, mark if begun_by == "this version" else as_before(mark))

        with monkeypatch.context() as patch:
            patch.setattr(Marks, "write", failing)
            with pytest.raises(KeyboardInterrupt):  # after the rows, before the version is marked
                load(table, format="delta")
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('a' = 'b')")
        assert load(table, format="delta") == LoadSummary(1, 0, 1, 0, None)
        append("b")
        assert load(table, format="delta").sent == 1, "a row of its own"

    def test_the_summary_tells_how_many_schedules_were_cancelled(
        self, spark: SparkSession, load: Load, tmp_path: Path
    ) -> None:
        table, rows = tmp_path / "table", spark.range(3).selectExpr("cast(id as string) id", "'t' target_topic")
        rows.coalesce(1).write.format("delta").save(str(table))
        load(table, format="delta")
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = '1'")
        summary = load(table, format="delta", cancels_deleted=True)
        assert summary == LoadSummary(0, 0, 0, 0, None, cancelled=1)
        assert summary.lines()[1] == "1 schedules cancelled: their rows were deleted"

    @pytest.mark.parametrize("cancels", [True, False], ids=["to cancel", "to send"])
    def test_a_version_whose_files_were_vacuumed_is_an_error_that_says_what_to_do(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, cancels: bool
    ) -> None:
        table = tmp_path / "a table, {100%} [+ ü]"
        rows = spark.range(3).selectExpr("cast(id as string) id", "'t' target_topic")
        rows.coalesce(1).write.format("delta").save(str(table))
        load(table, format="delta")
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = '1'")
        assert load(table, format="delta", cancels_deleted=True).cancelled == 1, "its files are there"
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = '2'")
        with configured(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
            spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")

        with pytest.raises(JobError, match=r"VACUUM has deleted files of version 1 .*another --name"):
            load(table, format="delta", cancels_deleted=cancels)

        assert load(table, format="delta", name="another", cancels_deleted=cancels).sent == 1

    @pytest.mark.parametrize("purge", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["kept", "rewritten"])
    def test_a_file_whose_deletion_vector_was_vacuumed_is_an_error_that_says_what_to_do(
        self, spark: SparkSession, load: Load, tmp_path: Path, purge: bool
    ) -> None:
        table, name = tmp_path / "a table, 100% + ü", f"delta.`{tmp_path / 'a table, 100% + ü'}`"
        rows = spark.range(4).selectExpr("cast(id as string) id", "'t' target_topic")
        rows.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(table))
        assert load(table, format="delta").sent == 4
        spark.sql(f"DELETE FROM {name} WHERE id = '1'")
        assert load(table, format="delta").sent == 0
        spark.sql(f"DELETE FROM {name} WHERE id = '2'")
        if purge:
            spark.sql(f"REORG TABLE {name} APPLY (PURGE)")
            for path in table.glob("**/deletion_vector_*.bin"):
                path.unlink()
        else:
            with configured(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
                spark.sql(f"VACUUM {name} RETAIN 0 HOURS")

        with pytest.raises(JobError, match=r"VACUUM has deleted files of version 1 .*another --name"):
            load(table, format="delta")

    def test_a_copy_of_a_delta_table_adds_nothing_until_it_gets_versions_of_its_own_and_then_is_an_error(
        self, spark: SparkSession, load: Load, tmp_path: Path
    ) -> None:
        table, copy = tmp_path / "table", tmp_path / "copy"

        def append(id: str, path: Path) -> None:
            rows = spark.createDataFrame([(id,)], "id string").selectExpr("id", "'t' target_topic")
            rows.coalesce(1).write.format("delta").mode("append").save(str(path))

        append("a", table)
        shutil.copytree(table, copy)
        assert load(table, format="delta").sent == 1
        assert load(copy, format="delta") == LoadSummary(0, 0, 0, 0, None)
        append("b", table)
        append("c", copy)
        assert load(table, format="delta").sent == 1
        with pytest.raises(JobError, match=r"copy is not the table that was loaded last.*another --name"):
            load(copy, format="delta")
        shutil.rmtree(table)
        spark.sql(f"RESTORE TABLE delta.`{copy}` TO VERSION AS OF 0")
        append("d", copy)
        with pytest.raises(JobError, match="up to version 1"):
            load(copy, format="delta")
        assert load(copy, format="delta", name="another").sent == 2

    def test_refused_rows_of_new_versions_of_a_delta_table_are_added_to_those_of_earlier_ones(
        self, spark: SparkSession, load: Load, tmp_path: Path
    ) -> None:
        table, kept = tmp_path / "table", tmp_path / "refused"
        for number, at in enumerate(("soon", AT, "later")):
            rows = spark.createDataFrame([(f"id-{number}", str(at))], "id string, at string")
            rows.selectExpr("id", "at", "'t' target_topic").coalesce(1).write.format("delta").mode("append").save(
                str(table)
            )
            load(table, format="delta", refused=str(kept))
        found = spark.read.parquet(str(kept)).select("content.id").collect()
        assert sorted(row.id for row in found) == ["id-0", "id-2"]

    def test_refused_rows_are_read_with_the_columns_of_all_loads_that_added_them(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table, kept = tmp_path / "table", tmp_path / "refused"
        for number, ignored in enumerate(("priority", "payload")):
            rows = spark.createDataFrame(
                [(f"long-{number}", "x", 5), (str(number), "x", 5)], "id string, payload string, priority int"
            )
            rows.coalesce(1).write.format("delta").mode("append").save(str(table))
            options: dict[str, Any] = {"constants": {"target-topic": "t"}, "ignored": (ignored,)}
            assert load(table, format="delta", refused=str(kept), limits=Limits(100, 3), **options).refused == 1
        assert load(kept, constants={"target-topic": "t"}).sent == 2
        found = {command.id: (command.payload, command.priority) for command in commands(kafka, topic)}
        assert found["long-0"][0] == b"x"
        assert found["long-1"][1] == 5

    @pytest.mark.parametrize("broadcast", BROADCASTS)
    @pytest.mark.soak
    def test_files_of_one_name_in_different_folders_are_told_apart(
        self, spark: SparkSession, load: Load, tmp_path: Path, broadcast: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(versions, "MOST_BROADCAST", broadcast)
        table = tmp_path / "a table, 100% + ü"
        columns = "cast(id as string) id", "'t' target_topic", f"{AT} at", "concat('a b=', id % 2) folder"
        spark.range(40).selectExpr(*columns).coalesce(1).write.partitionBy("folder").parquet(str(table))
        spark.sql(f"CONVERT TO DELTA parquet.`{table}` PARTITIONED BY (folder string)")
        assert len({path.name for path in table.glob("folder=*/*.parquet")}) == 1
        options: dict[str, Any] = {"format": "delta", "ignored": ("folder",)}
        assert load(table, **options).sent == 40
        spark.sql(f"UPDATE delta.`{table}` SET target_topic = 'u' WHERE id IN ('1', '11', '21', '31')")
        parts = []
        for partitions in (2, 5):
            with configured(spark, {"spark.sql.shuffle.partitions": str(partitions)}):
                (part,) = TableVersion.at(spark, str(table), {}).between(0, 1)
                parts.append(part.select("id", F.spark_partition_id()).collect())
        assert parts[0] == parts[1], "batches are the same whatever the cluster"
        assert [row.id for row in parts[0]] == ["1", "11", "21", "31"], "in the order of their file"
        assert load(table, **options).sent == 4

    @pytest.mark.soak
    def test_a_delta_table_that_is_replaced_sends_what_is_new(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, prefix: str, tmp_path: Path
    ) -> None:
        table, name = tmp_path / "table", prefix.replace("-", "_")

        def replace(*ids: str) -> None:
            rows = ", ".join(f"('{id}', 't', 'x')" for id in ids)
            values = f"SELECT * FROM VALUES {rows} AS rows(id, target_topic, payload)"
            spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta LOCATION '{table}' AS {values}")

        try:
            replace("a", "b")
            assert load(table, format="delta").sent == 2
            replace("b", "c", "a")
            assert load(table, format="delta") == LoadSummary(1, 1, 0, 0, None)
            replace("d", "c")
            replace("d", "c", "b")
            assert load(table, format="delta").sent == 1, "b was there in the version that was loaded last"
        finally:
            spark.sql(f"DROP TABLE {name}")
        assert [command.id for command in commands(kafka, topic)] == list("abcd")

    @pytest.mark.soak
    def test_a_load_of_a_delta_table_that_failed_goes_on_with_the_version_it_began(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "table"
        for ids in ((0, 3), (3, 6)):
            rows = spark.range(*ids).selectExpr("cast(id as string) id", "'t' target_topic", f"{AT} at", "'x' payload")
            rows.coalesce(1).write.format("delta").mode("append").save(str(table))
        rows = spark.range(6, 7).selectExpr("'6' id", "'t' target_topic", f"{AT} at", "repeat('x', 2000000) payload")
        rows.coalesce(1).write.format("delta").mode("append").save(str(table))
        with pytest.raises(Exception, match="Message size too large"):
            load(table, format="delta", cluster=Cluster(kafka.bootstrap_servers, {"message.max.bytes": "1000000"}))
        spark.sql(f"OPTIMIZE delta.`{table}`")
        limits = Limits(1_000_000, 100)
        summary = load(table, format="delta", limits=limits, refused=str(tmp_path / "refused"))
        assert (summary.rows, summary.refused, summary.sent + summary.sent_before) == (7, 1, 6)
        assert [command.id for command in commands(kafka, topic)] == [str(number) for number in range(6)]
        assert load(table, format="delta") == LoadSummary(0, 0, 0, 0, None)

    @pytest.mark.soak
    def test_rows_of_a_large_file_that_are_deleted_by_vectors_after_a_load_broke_off_shift_no_others(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import light_scheduler.pipeline.load as job

        count, breaks_at, deleted = 30_000, 6_500, 1_500
        table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
        columns = "format_string('%05d', id) id", "'t' target_topic", f"{AT} at"
        payload = f"if(id = {breaks_at}, repeat('x', 2000000), 'x') payload"
        spark.range(count).selectExpr(*columns, payload).coalesce(1).write.format("delta").save(str(table))
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        monkeypatch.setitem(job._CONFIGS, "spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
        with pytest.raises(Exception, match="Message size too large"):
            load(table, format="delta", cluster=Cluster(kafka.bootstrap_servers, {"message.max.bytes": "1000000"}))
        assert len(commands(kafka, topic)) == 6_000
        files = spark.read.format("delta").load(str(table)).inputFiles()
        spark.sql(f"DELETE FROM {name} WHERE id < '{deleted:05}'")
        assert spark.read.format("delta").load(str(table)).inputFiles() == files, "rows are marked in a vector"

        summary = load(table, format="delta", limits=Limits(1_000_000, 100), refused=str(tmp_path / "refused"))

        assert (summary.sent, summary.sent_before, summary.refused) == (count - 6_000 - 1, 6_000, 1)
        sent = [command.id for command in commands(kafka, topic)]
        assert sent == [f"{number:05}" for number in range(count) if number != breaks_at]
        assert load(table, format="delta") == LoadSummary(0, 0, 0, 0, None)

    @pytest.mark.soak
    def test_a_file_with_more_rows_sends_nothing_that_has_passed_again_unless_it_is_asked_for(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "table.csv"

        def write(*rows: tuple[str, int, str]) -> None:
            lines = [f"{id},{at or ''},{after}" for id, at, after in rows]
            table.write_text("\n".join(["id,at,after", *lines]) + "\n")

        first = ("passed", PASSED, ""), ("ahead", AT, ""), ("after", 0, "1h")
        options: dict[str, Any] = {"format": "csv", "constants": {"target-topic": "t"}}
        write(*first)
        assert load(table, **options).sent == 3, "what has passed is sent the first time"
        write(*first, ("new", AT, ""), ("new-passed", PASSED, ""))
        for sent in (2, 0):
            again = load(table, **options, refused=str(tmp_path / "refused"))
            assert (again.sent, again.refused, again.failed) == (sent, 3, True)
        found = refused(spark, tmp_path / "refused")
        assert [(row, field) for row, field, _ in found] == [(1, "at"), (3, "after"), (5, "at")]
        assert all("--send-past" in reason for _, _, reason in found)
        assert [command.id for command in commands(kafka, topic)] == ["after", "ahead", "ahead", "new", "passed"]
        assert load(table, **options, sends_past=True) == LoadSummary(5, 3, 2, 0, None)
        assert load(table, **options) == LoadSummary(5, 0, 5, 0, None)

    @pytest.mark.soak
    def test_rows_that_were_refused_because_they_have_passed_can_be_loaded_from_their_table(
        self, load: Load, tmp_path: Path
    ) -> None:
        kept = tmp_path / "refused"
        for ids, refused in ((["a"], 0), (["a", "b"], 2), (["a", "b", "c"], 3)):
            table = parquet(tmp_path / "table.parquet", id=ids, at=[PASSED] * len(ids), target_topic=["t"] * len(ids))
            assert load(table, refused=str(kept)).refused == refused
            if refused:
                assert load(kept).sent == refused

    @pytest.mark.soak
    def test_a_table_that_is_written_anew_sends_nothing_that_has_passed_again(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table, at = tmp_path / "a table", f"if(id < 9, {PASSED}, {AT}) at"
        rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", at)
        rows.repartition(2).write.parquet(str(table))
        assert load(table).sent == 10
        rows.limit(2).write.mode("append").parquet(str(table))
        assert load(table).sent == 2, "new files only add theirs"
        rows.repartition(3).write.mode("overwrite").parquet(str(table))
        for sent in (1, 0):
            again = load(table)
            assert (again.sent, again.refused) == (sent, 9)
        assert len(commands(kafka, topic)) == 13

    @pytest.mark.soak
    def test_a_delta_table_that_is_made_again_sends_nothing_that_has_passed_again(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "table"
        rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", f"{PASSED} at")
        for files, sent in ((1, 10), (2, 0)):
            shutil.rmtree(table, ignore_errors=True)
            rows.repartition(files).write.format("delta").save(str(table))
            summary = load(table, format="delta")
            assert (summary.sent, summary.refused) == (sent, 10 - sent)
        assert len(commands(kafka, topic)) == 10

    def test_a_load_that_is_run_again_adds_nothing_and_new_files_only_add_theirs(
        self, load: Load, kafka: Kafka, topic: str, tmp_path: Path
    ) -> None:
        folder = tmp_path / "tables"
        folder.mkdir()
        parquet(folder / "one.parquet", id=["a", "b"], target_topic=["t"] * 2)
        parquet(folder / "two.parquet", id=["c"], target_topic=["t"])
        assert load(folder).sent == 3
        assert load(folder) == LoadSummary(3, 0, 3, 0, None)
        parquet(folder / "three.parquet", id=["d"], target_topic=["t"])
        assert load(folder) == LoadSummary(4, 1, 3, 0, None)
        assert [command.id for command in commands(kafka, topic)] == ["a", "b", "c", "d"]
        assert load(folder, name=f"{topic}-other").sent == 4

    @pytest.mark.soak
    def test_a_load_that_fails_half_way_goes_on_where_it_was(
        self, spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import light_scheduler.pipeline.load as job

        count = 1_000
        table = parquet(
            tmp_path / "table.parquet",
            id=[f"{number:04}" for number in range(count)],
            target_topic=["t"] * count,
            payload=["x" * 100] * 900 + ["x" * 2_000_000] + ["x" * 100] * 99,
        )
        monkeypatch.setitem(job._CONFIGS, "spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        with pytest.raises(Exception, match="Message size too large"):
            load(table, cluster=Cluster(kafka.bootstrap_servers, {"message.max.bytes": "1000000"}))
        assert len(commands(kafka, topic)) == 900
        limits = Limits(1_000_000, 100)
        assert load(table, limits=limits) == LoadSummary(count, 99, 900, 1, None)
        assert len({command.id for command in commands(kafka, topic)}) == len(commands(kafka, topic)) == 999
