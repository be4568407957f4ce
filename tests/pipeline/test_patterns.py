"""Patterns of paths mean what Hadoop makes of them, or are refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from support.tries import tries

from light_scheduler.errors import JobError
from light_scheduler.pipeline.exported import read_export
from light_scheduler.pipeline.globs import expanded, name_pattern, require_pattern
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.load import LoadOptions, main
from light_scheduler.pipeline.tables import write_table

pytestmark = [pytest.mark.pipeline]

OPTIONS = LoadOptions(table="", cluster=Cluster("127.0.0.1:1"), commands_topic="t", marks_topic="m", dry_run=True)
CHARACTERS = "abz-[]^!\\*?,{}."
NAMES = (*CHARACTERS, "", "aa", "ab", "a-", "b]", "--", "a\\", "]z", ".,", "a}")


@pytest.mark.soak
def test_a_pattern_that_is_not_refused_means_what_hadoop_makes_of_it(spark: SparkSession) -> None:
    count, is_read = tries(2_000), 0
    for pattern in patterns(count):
        try:
            require_pattern(pattern)
        except JobError:
            continue
        is_read += 1
        found = [any(name_pattern(each).fullmatch(name) for each in expanded(pattern)) for name in NAMES]
        assert found == of_hadoop(spark, pattern), pattern
    assert is_read > count // 4


def test_hadoop_refuses_what_has_no_end(spark: SparkSession) -> None:
    for pattern in ("[b-a]", "[^]", "[]", "{a,b", "a\\", "[a[b]", "[{]", "[a-\\z]"):
        with pytest.raises(Py4JJavaError, match="PatternSyntaxException"):
            of_hadoop(spark, pattern)
        with pytest.raises(JobError):
            require_pattern(pattern)


@pytest.mark.parametrize("refused", [None, "refused"])
def test_jobs_refuse_a_pattern_that_cannot_be_read(spark: SparkSession, tmp_path: Path, refused: str | None) -> None:
    table = str(tmp_path / "[b-a].csv")
    why = r"^the table .*/\[b-a\]\.csv is a pattern that cannot be read: its range b-a begins after its end"
    options = replace(OPTIONS, table=table, format="csv", refused=refused and str(tmp_path / refused))
    with pytest.raises(JobError, match=why):
        main(spark, options)
    with pytest.raises(JobError, match=why):
        read_export(spark, table, "parquet")


def test_the_path_of_a_delta_table_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "[b-a]"
    write_table(spark.sql("SELECT 'a' id, 'x' key, 't' target_topic, 1900000000000 at"), str(table), "delta")
    options = replace(OPTIONS, table=str(table), format="delta")
    assert main(spark, replace(options, refused=str(tmp_path / "b"))).rows == 1
    with pytest.raises(JobError, match=r"^--refused .* is in the folder that is loaded"):
        main(spark, replace(options, refused=str(table / "refused")))


def patterns(count: int) -> Iterator[str]:
    drawn = random.Random(8)
    parts = (*CHARACTERS, "[a-", "[^", "[!", "]", "]", "\\]", "\\-", "{a,", "}")
    for _ in range(count):
        yield "".join(drawn.choices(parts, k=drawn.randint(1, 6)))


def of_hadoop(spark: SparkSession, pattern: str) -> list[bool]:
    compiled = spark._jvm.org.apache.hadoop.fs.GlobPattern(pattern)  # type: ignore[union-attr]
    return [compiled.matches(name) for name in NAMES]
