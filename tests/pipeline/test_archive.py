"""Topics in a lake table: every record once, whatever is killed, in few files."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from support.jobs import quick_environment
from support.ledger import Ledger
from support.ordering import ordered_producer
from support.placing import delete_topic
from support.waiting import eventually_blocking

from light_scheduler.clock import SettableClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline.archive import KAFKA_COLUMNS, ArchiveOptions, ArchiveSummary, main, read_archive
from light_scheduler.pipeline.audit import AuditOptions
from light_scheduler.pipeline.audit import main as audit
from light_scheduler.pipeline.audit.sources import Archive
from light_scheduler.pipeline.job import Cluster, configured
from light_scheduler.pipeline.losses import losses
from light_scheduler.pipeline.topics import read_topics
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(7_200)]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, DAY = 60_000, 86_400_000
COMMIT_TIMEOUT_S = 900.0
PAUSE_S = 0.5
"""After each hundredth of what flows between two kills: so that it flows until the last of them."""


def archived(spark: SparkSession, kafka: Kafka, path: Path, topics: list[str], **options: Any) -> ArchiveSummary:
    return main(spark, ArchiveOptions(Cluster(kafka.bootstrap_servers), topics, str(path), **options))


def comparable(table: DataFrame) -> DataFrame:
    """Return a table without types that rows cannot be compared by."""
    return table.select(*KAFKA_COLUMNS).withColumn("headers", table["headers"].cast("string"))


def assert_equal_row_for_row(spark: SparkSession, kafka: Kafka, path: Path, topics: list[str]) -> int:
    kept, there = read_archive(spark, str(path)), read_topics(spark, kafka.bootstrap_servers, topics)
    assert comparable(kept).exceptAll(comparable(there)).count() == 0, "nothing twice, and nothing else"
    assert comparable(there).exceptAll(comparable(kept)).count() == 0, "nothing is missing"
    return kept.count()


@pytest.mark.soak
@pytest.mark.usefixtures("compiled_plans")
def test_a_table_has_each_record_once_in_few_files_and_can_be_audited(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    ledger = Ledger(prefix)
    topics = sorted(ledger.topics)
    for number in range(300):
        ledger.send(f"s-{number}", M, ("at", M + MINUTE + number))
    ledger.run(M)
    ledger.run(M + 2 * MINUTE)
    ledger.produce(kafka.bootstrap_servers)
    first = archived(spark, kafka, tmp_path / "lake", topics, batch=400)
    again = archived(spark, kafka, tmp_path / "lake", topics)

    assert (first.records, again.records) == (1_200, 0)
    assert first.batches >= 3
    assert first.files == 3, "one for each topic and day"
    assert assert_equal_row_for_row(spark, kafka, tmp_path / "lake", topics) == 1_200

    options = AuditOptions(
        cluster=Cluster(kafka.bootstrap_servers),
        names=ledger.names,
        inputs={ledger.names.commands: "native"},
        rules=FiringRules(),
        limits=Limits(1_000_000, 512),
        end=M + 3 * MINUTE,
        archive=str(tmp_path / "lake"),
        clock=SettableClock(M),
    )
    summary = audit(spark, options)
    assert (list(summary.faults), summary.firings, summary.unjudged) == ([], 300, 0)


@pytest.mark.soak
def test_days_are_those_of_utc_in_a_session_of_any_time_zone(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    create_topic(kafka.bootstrap_servers, prefix, 1, configs={"retention.ms": "-1"})
    producer = ordered_producer(kafka.bootstrap_servers)
    for at in (M - 1, M, M + DAY - 1, M + DAY):
        producer.produce(prefix, b"x", timestamp=at)
    producer.flush()
    with configured(spark, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
        archived(spark, kafka, tmp_path / "lake", [prefix])
        assert read_archive(spark, str(tmp_path / "lake"), M, M + DAY - 1).count() == 2
    days = {path.name for path in (tmp_path / "lake" / f"topic={prefix}").iterdir()}
    assert days == {"date=2025-12-31", "date=2026-01-01", "date=2026-01-02"}


@pytest.mark.soak
@pytest.mark.every_case
def test_what_is_killed_while_it_archives_neither_loses_nor_doubles_a_record(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count, kills = request.config.getoption("--archived"), request.config.getoption("--archive-kills")
    topics = [f"{prefix}-{kind}" for kind in ("commands", "history", "results", "dead-letters")]
    for topic in topics:
        create_topic(kafka.bootstrap_servers, topic, 2)
    path = tmp_path / "lake"
    with flowing(kafka, topics, count, kills) as done:
        for number in range(kills):
            with archiving(kafka, prefix, path, count // (20 * max(1, kills))) as process:
                wait_for_commit(path, commits(path), process)
                time.sleep(random.Random(number).random())  # anywhere in what it does then
                os.killpg(process.pid, signal.SIGKILL)
        done.set()
    archived(spark, kafka, path, topics)
    assert assert_equal_row_for_row(spark, kafka, path, topics) == count


@contextmanager
def flowing(kafka: Kafka, topics: list[str], count: int, kills: int) -> Iterator[threading.Event]:
    """Produce records while the block runs, and what is left of them as soon as the event is set."""
    hurry = threading.Event()
    share = max(1, count // (100 * max(1, kills)))

    def produce() -> None:
        producer = ordered_producer(kafka.bootstrap_servers)
        for number in range(count):
            value = None if number % 13 == 0 else bytes([number % 256]) * (number % 200)
            headers: list[tuple[str, Any]] = [("number", b"%d" % number), ("none", None), ("number", b"\xff")]
            producer.produce(topics[number % len(topics)], value, b"%d" % number, headers=headers[: number % 4])
            if number % share == 0:
                producer.flush()
                hurry.wait(PAUSE_S)
        assert producer.flush() == 0

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield hurry
    finally:
        hurry.set()
        thread.join()


@contextmanager
def archiving(
    kafka: Kafka, app_id: str, path: Path, batch: int, *options: str, stdout: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `light-scheduler pipeline archive --continuous` in a process group of its own, with its JVM."""
    command = [sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", "archive", str(path)]
    command += ["--continuous", "--batch", str(max(1, batch)), "--app-id", app_id, "--memory", "1g"]
    command += ["--broker", f"kafka://{kafka.bootstrap_servers}", "--master", "local[2]", *options]
    process = subprocess.Popen(
        command, process_group=0, stdout=stdout, stderr=subprocess.DEVNULL, env=quick_environment()
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def commits(path: Path) -> int:
    return len(list((path / "_delta_log").glob("*.json")))


def wait_for_commit(path: Path, before: int, process: subprocess.Popen[bytes]) -> None:
    """Return when the table has more commits than before."""

    def has_committed() -> bool:
        assert process.poll() is None, "the archive ended by itself"
        return commits(path) > before

    eventually_blocking(has_committed, within=COMMIT_TIMEOUT_S, every=0.05, what="a commit of the archive")


@pytest.mark.parametrize(
    ("send", "number"),
    [
        pytest.param(os.killpg, signal.SIGINT, id="Ctrl-C goes to all processes of a terminal"),
        pytest.param(
            os.kill,
            signal.SIGTERM,
            id="a supervisor asks the process that it started",
            marks=pytest.mark.every_case,
        ),
    ],
)
@pytest.mark.soak
@pytest.mark.every_case
def test_a_continuous_archive_that_is_told_to_stop_ends_with_its_summary(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path, send: Callable[[int, int], None], number: int
) -> None:
    topics = [f"{prefix}-{kind}" for kind in ("commands", "history", "results", "dead-letters")]
    for topic in topics:
        create_topic(kafka.bootstrap_servers, topic, 1)
    path = tmp_path / "lake"
    with (
        flowing(kafka, topics, 400, 0) as done,
        archiving(kafka, prefix, path, 1_000, "--json", stdout=subprocess.PIPE) as process,
    ):
        done.set()
        wait_for_commit(path, 0, process)
        send(process.pid, number)
        output, _ = process.communicate(timeout=COMMIT_TIMEOUT_S)
    assert process.returncode == 0
    summary = json.loads(output)
    assert summary["records"] == read_archive(spark, str(path)).count() > 0
    archived(spark, kafka, path, topics)
    assert assert_equal_row_for_row(spark, kafka, path, topics) == 400


class TestATopicThatWasCreatedAgain:
    @pytest.mark.every_case
    def test_is_not_archived_as_if_it_were_the_same_unless_loss_is_allowed(
        self, spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
    ) -> None:
        producer = ordered_producer(kafka.bootstrap_servers)
        for values in (b"ab", b"cde"):
            create_topic(kafka.bootstrap_servers, prefix, 1)
            for value in values:
                producer.produce(prefix, bytes([value]))
            assert producer.flush(15) == 0
            if values == b"ab":
                assert archived(spark, kafka, tmp_path / "lake", [prefix]).records == 2
                delete_topic(kafka.bootstrap_servers, prefix)
        with pytest.raises(StreamingQueryException, match=rf"topic {prefix} was deleted .*--allow-data-loss"):
            archived(spark, kafka, tmp_path / "lake", [prefix])
        assert archived(spark, kafka, tmp_path / "lake", [prefix], allow_data_loss=True).records == 3
        kept = read_archive(spark, str(tmp_path / "lake")).select("value").collect()
        assert sorted(bytes(row.value) for row in kept) == [b"a", b"b", b"c", b"d", b"e"]
        assert archived(spark, kafka, tmp_path / "lake", [prefix]).records == 0
        with pytest.raises(JobError, match=f"two topics {prefix}: it was deleted and created again"):
            Archive(spark, str(tmp_path / "lake")).logs([prefix])


@pytest.mark.soak
@pytest.mark.every_case
def test_records_that_retention_took_first_are_an_error_until_an_archive_has_gone_on_without_them(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    producer = ordered_producer(kafka.bootstrap_servers)
    create_topic(kafka.bootstrap_servers, prefix, 1)
    lake = tmp_path / "lake"
    for values in (b"ab", b"cde"):
        for value in values:
            producer.produce(prefix, bytes([value]))
        assert producer.flush(15) == 0
        if values == b"ab":
            assert archived(spark, kafka, lake, [prefix]).records == 2
    (deleted,) = admin.delete_records([TopicPartition(prefix, 0, 4)]).values()
    deleted.result(15)
    with pytest.raises(StreamingQueryException, match="--allow-data-loss"):
        archived(spark, kafka, lake, [prefix])
    assert archived(spark, kafka, lake, [prefix], allow_data_loss=True).records == 1
    assert archived(spark, kafka, lake, [prefix]).records == 0
    kept = {bytes(row.value): row.timestamp for row in read_archive(spark, str(lake)).collect()}
    assert sorted(kept) == [b"a", b"b", b"e"]
    source = Archive(spark, str(lake))
    assert source.logs([prefix])[prefix].truncated == {0}, "an audit knows of the gap"
    assert source.firsts(prefix, [0]) == {0: round(kept[b"e"].replace(tzinfo=UTC).timestamp() * 1_000)}


@pytest.mark.soak
@pytest.mark.every_case
def test_a_continuous_archive_notes_what_retention_takes_while_it_runs(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    producer, lake, stop = ordered_producer(kafka.bootstrap_servers), tmp_path / "lake", threading.Event()
    create_topic(kafka.bootstrap_servers, prefix, 1)

    def produce(count: int) -> None:
        for number in range(count):
            producer.produce(prefix, b"%d" % number)
        assert producer.flush(15) == 0

    def wait_for_offset(offset: int) -> None:
        def is_there() -> bool:
            assert not running.done(), "the archive ended by itself"
            return not read_archive(spark, str(lake)).where(f"offset = {offset}").isEmpty()

        eventually_blocking(is_there, within=COMMIT_TIMEOUT_S, every=0.2, what=f"offset {offset} in the archive")

    produce(1)
    assert archived(spark, kafka, lake, [prefix]).records == 1
    produce(1)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            archived, spark, kafka, lake, [prefix], batch=2, continuous=True, allow_data_loss=True, stop=stop
        )
        try:
            wait_for_offset(1)
            produce(20)  # which it takes ten seconds for, two at a time
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
            (deleted,) = admin.delete_records([TopicPartition(prefix, 0, 17)]).values()
            deleted.result(15)
            wait_for_offset(21)
        finally:
            stop.set()
        assert 6 <= running.result().records < 21
    assert losses(spark, str(lake), [prefix]) == {(prefix, 0): 17}


@pytest.mark.soak
@pytest.mark.every_case
def test_only_days_that_got_records_are_compacted_and_only_those_asked_for_are_read(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    create_topic(kafka.bootstrap_servers, prefix, 2, configs={"retention.ms": "-1"})
    producer, lake = ordered_producer(kafka.bootstrap_servers), tmp_path / "lake"

    def produce(day: int) -> None:
        for partition in (0, 1):
            producer.produce(prefix, b"%d" % day, partition=partition, timestamp=M + day * DAY)
        assert producer.flush(15) == 0

    def files() -> dict[str, set[str]]:
        table = spark.read.format("delta").load(str(lake))
        found: dict[str, set[str]] = {}
        for path in table.inputFiles():
            found.setdefault(path.split("date=")[1].split("/")[0], set()).add(path)
        return found

    for day in (0, 1):
        produce(day)
    archived(spark, kafka, lake, [prefix])
    assert [len(of_day) for of_day in files().values()] == [1, 1]
    table = spark.read.format("delta").load(str(lake))
    rows = spark.createDataFrame(table.collect(), table.schema)
    for partition, mode in ((0, "overwrite"), (1, "append")):
        rows.where(f"partition = {partition}").coalesce(1).write.format("delta").mode(mode).save(str(lake))
    spark.sql(f"OPTIMIZE delta.`{lake}` WHERE date = '2026-01-02'")
    split_up = files()
    produce(2)
    archived(spark, kafka, lake, [prefix], vacuum=7 * DAY)
    found = files()
    assert {day: len(of_day) for day, of_day in found.items()} == {"2026-01-01": 2, "2026-01-02": 1, "2026-01-03": 1}
    assert found["2026-01-01"] == split_up["2026-01-01"]
    of_days = read_archive(spark, str(lake), M + DAY + 1, M + 2 * DAY)
    assert {bytes(row.value) for row in of_days.collect()} == {b"1", b"2"}
    assert {path.split("date=")[1].split("/")[0] for path in of_days.inputFiles()} == {"2026-01-02", "2026-01-03"}


@pytest.mark.soak
@pytest.mark.every_case
def test_a_relative_path_is_that_of_the_working_directory(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    create_topic(kafka.bootstrap_servers, prefix, 1)
    producer = ordered_producer(kafka.bootstrap_servers)
    for _ in range(3):
        producer.produce(prefix, b"x")
    assert producer.flush(15) == 0
    first = archived(spark, kafka, Path("lake"), [prefix])
    assert (first.records, first.files) == (3, 1)
    assert read_archive(spark, "lake").count() == read_archive(spark, str(tmp_path / "lake")).count() == 3


def test_what_is_no_archive_is_told(spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="is not an archive"):
        read_archive(spark, str(tmp_path))
    with pytest.raises(JobError, match=f"topic {prefix} cannot be used"):
        archived(spark, kafka, tmp_path / "lake", [prefix])


def test_another_table_is_left_as_it_is(spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path) -> None:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    spark.range(1).write.format("delta").save(str(tmp_path / "other"))
    with pytest.raises(JobError, match="other has another table of Delta Lake, which is no archive"):
        archived(spark, kafka, tmp_path / "other", [prefix])
    assert spark.read.format("delta").load(str(tmp_path / "other")).columns == ["id"]


@pytest.mark.soak
@pytest.mark.every_case
def test_topics_that_are_empty_at_first_are_archived_once_they_have_records(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    lake = tmp_path / "lake"
    assert [archived(spark, kafka, lake, [prefix]).records for _ in range(2)] == [0, 0]
    producer = ordered_producer(kafka.bootstrap_servers)
    producer.produce(prefix, b"x")
    assert producer.flush(15) == 0
    assert archived(spark, kafka, lake, [prefix]).records == 1


@pytest.mark.soak
@pytest.mark.every_case
def test_a_checkpoint_whose_table_is_gone_is_an_error(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    producer, lake = ordered_producer(kafka.bootstrap_servers), tmp_path / "lake"
    producer.produce(prefix, b"x")
    assert producer.flush(15) == 0
    assert archived(spark, kafka, lake, [prefix]).records == 1
    for folder in ("_delta_log", f"topic={prefix}"):
        shutil.rmtree(lake / folder)
    with pytest.raises(JobError, match=r"whose table is gone.* or delete \S*/_checkpoint"):
        archived(spark, kafka, lake, [prefix])
    shutil.rmtree(lake / "_checkpoint")
    assert archived(spark, kafka, lake, [prefix]).records == 1
