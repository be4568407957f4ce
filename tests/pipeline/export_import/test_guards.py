"""What `import` refuses, so that no schedule is there twice or goes astray."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from support.cases import by_day
from support.exporting import (
    IMPORTED,
    NOW,
    ONCE,
    PARTITIONS,
    TARGET,
    Write,
    defined,
    ended,
    entry,
    export_to,
    options_of,
    pending,
)

from light_scheduler.engine.limits import Limits
from light_scheduler.errors import JobError
from light_scheduler.model import Entry, HomeKey
from light_scheduler.pipeline import importing
from light_scheduler.pipeline.exclusion import only_import
from light_scheduler.pipeline.job import Cluster
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire.state import bulk_part_key

from .test_more_partitions import more_partitions

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.soak]


class TestGuards:
    def test_nothing_is_added_to_schedules_that_are_there_unless_it_is_asked_for(
        self,
        spark: SparkSession,
        kafka: Kafka,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
    ) -> None:
        new = applications[1]
        other = entry("another", at=str(NOW))
        write(new, 0, defined(other))
        with pytest.raises(JobError, match="has 1 schedules that are not in the table"):
            importing.main(spark, exported)
        assert pending(kafka, new) == [(0, other)]
        assert importing.main(spark, replace(exported, replace=True)).written == 4
        assert [stored for _, stored in pending(kafka, new)] == [other, *IMPORTED]

    @pytest.mark.every_case
    def test_what_was_imported_and_fired_since_is_not_imported_again(
        self,
        spark: SparkSession,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
    ) -> None:
        write(applications[1], 0, defined(ONCE), ended(ONCE))
        with pytest.raises(
            JobError, match=r"1 schedules of the table are in .* already and have fired or changed since"
        ):
            importing.main(spark, exported)

    @pytest.mark.parametrize(
        ("changes", "message"),
        by_day(
            4,
            [
                ({"topics": {TARGET: "not-there"}}, "target topics are missing: create not-there"),
                ({"commands_topics": ("one", "two")}, "map it to one, two"),
                (
                    {"limits": Limits(100, 100, frozenset({TARGET}))},
                    f"4 schedules .* such as default/backoff: schedule-target-topic: {TARGET} is an internal topic",
                ),
                (
                    {"limits": Limits(1, 100)},
                    "1 schedules .* such as other/cron: payload: has 2 bytes; at most 1 .* Nothing was imported",
                ),
                ({"limits": Limits(100, 5)}, "1 schedules .* default/backoff: schedule-id: is longer than 5 bytes"),
                ({"table": "/not/there"}, "/not/there cannot be read as parquet"),
                ({"app_id": "nobody"}, "topic .* cannot be used"),
            ],
        ),
    )
    def test_what_does_not_fit_is_refused_with_what_to_do(
        self, spark: SparkSession, exported: importing.ImportOptions, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(JobError, match=message):
            importing.main(spark, replace(exported, **changes))

    def test_what_is_written_is_checked_whatever_the_columns_for_people_say(
        self, spark: SparkSession, exported: importing.ImportOptions, tmp_path: Path
    ) -> None:
        changed = spark.read.parquet(exported.table).withColumn("target_topic", F.lit("elsewhere"))
        changed.write.parquet(str(tmp_path / "changed"))
        options = replace(exported, table=str(tmp_path / "changed"), topics={TARGET: "not-there"})
        with pytest.raises(JobError, match="target topics are missing: create not-there"):
            importing.main(spark, options)
        options = replace(exported, table=str(tmp_path / "changed"), limits=Limits(100, 100, frozenset({TARGET})))
        with pytest.raises(JobError, match="is an internal topic"):
            importing.main(spark, options)

    def test_a_partition_that_the_topic_has_not_is_refused(
        self, spark: SparkSession, exported: importing.ImportOptions, tmp_path: Path
    ) -> None:
        spark.read.parquet(exported.table).withColumn("partition", F.lit(7)).write.parquet(str(tmp_path / "changed"))
        with pytest.raises(JobError, match="partition: 7 is none of 2"):
            importing.main(spark, replace(exported, table=str(tmp_path / "changed")))

    @pytest.mark.every_case
    def test_two_commands_topics_become_one_unless_an_id_is_in_both(
        self,
        spark: SparkSession,
        kafka: Kafka,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
        tmp_path: Path,
    ) -> None:
        old, new = applications
        rows = spark.read.parquet(exported.table)
        once = rows.where("id = 'once'")
        both = rows.where("id <> 'once'").unionByName(once.withColumn("commands_topic", F.lit("second")))
        both.write.parquet(str(tmp_path / "both"))
        both.unionByName(once.withColumn("partition", F.lit(1))).write.parquet(str(tmp_path / "clash"))
        names = {old.topics.commands: new.topics.commands, "second": new.topics.commands}
        with pytest.raises(JobError, match=r"1 schedules would replace each other .* such as default/once of"):
            importing.main(spark, replace(exported, table=str(tmp_path / "clash"), topics=names))
        assert pending(kafka, new) == []
        written = importing.main(spark, replace(exported, table=str(tmp_path / "both"), topics=names))
        assert written == importing.ImportSummary(4, 4)
        assert [stored for _, stored in pending(kafka, new)] == IMPORTED

    @pytest.mark.every_case
    def test_nothing_is_imported_beside_a_bulk_command_that_is_at_work(
        self,
        spark: SparkSession,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
    ) -> None:
        write(applications[1], 0, (bulk_part_key(3), b"at work"))
        with pytest.raises(JobError, match="has 1 bulk commands that are not finished"):
            importing.main(spark, exported)
        write(applications[1], 0, (bulk_part_key(3), None))
        assert importing.main(spark, exported).written == 4

    @pytest.mark.every_case
    def test_two_imports_do_not_run_at_once(self, kafka: Kafka, applications: tuple[Settings, Settings]) -> None:
        names = applications[1].topics
        cluster = Cluster(kafka.bootstrap_servers)

        def importing() -> AbstractContextManager[None]:
            return only_import(cluster, names.app_id, names.changelog(names.commands))

        with importing():
            with pytest.raises(JobError, match=f"another import into {names.app_id} runs"), importing():
                pytest.fail("it began")
            with only_import(cluster, f"{names.app_id}-other", names.changelog(names.commands)):
                pass
        with importing():
            pass

    def test_another_number_of_partitions_is_refused_where_keys_do_not_decide(
        self, spark: SparkSession, kafka: Kafka, exported: importing.ImportOptions, prefix: str
    ) -> None:
        other = more_partitions(kafka, prefix)
        with pytest.raises(JobError, match=f"create the topics of {prefix}-more with {PARTITIONS}"):
            importing.main(spark, replace(options_of(other, Path(exported.table)), keyed_topics=frozenset()))

    @pytest.mark.every_case
    def test_a_schedule_without_its_key_is_refused_among_another_number_of_partitions(
        self,
        spark: SparkSession,
        kafka: Kafka,
        applications: tuple[Settings, Settings],
        write: Write,
        prefix: str,
        tmp_path: Path,
    ) -> None:
        keyless = Entry(msgspec.structs.replace(ONCE.schedule, home_key=HomeKey.UNKNOWN), ONCE.progress)
        write(applications[0], 0, defined(keyless))
        export_to(spark, applications[0], tmp_path / "keyless")
        with pytest.raises(JobError, match="stored the schedule without its key"):
            importing.main(spark, options_of(more_partitions(kafka, prefix), tmp_path / "keyless"))
        importing.main(spark, options_of(applications[1], tmp_path / "keyless"))
