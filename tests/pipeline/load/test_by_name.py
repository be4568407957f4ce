"""Tables of Spark's catalog that a load takes by name, and those that it refuses with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.loading import AT, Load

from light_scheduler.errors import JobError

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900)]

SET = {"target-topic": "t", "at": str(AT)}


@pytest.fixture
def schema(spark: SparkSession, prefix: str, tmp_path: Path) -> Iterator[str]:
    schema = prefix.replace("-", "_")
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}/lake'")
    for kind in ("json", "csv", "orc", "parquet"):
        spark.sql(f"CREATE TABLE {schema}.of_{kind} USING {kind} AS SELECT '{kind}' AS id")
    spark.sql(f"CREATE VIEW {schema}.of_view AS SELECT * FROM {schema}.of_parquet")
    yield schema
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.soak
@pytest.mark.every_case
def test_tables_whose_lines_have_to_be_checked_are_loaded_by_the_path_that_the_error_names(
    spark: SparkSession, load: Load, schema: str, tmp_path: Path
) -> None:
    folder = tmp_path / "lake" / "of_json"
    (folder / "more.json").write_text('{"id": "a"} {"id": "b"}\n')
    for dry_run in (True, False):
        for kind in ("json", "csv"):
            with pytest.raises(JobError, match=rf"lake/of_{kind} with --format {kind}, and with --read-option"):
                load(f"table:{schema}.of_{kind}", constants=SET, dry_run=dry_run)
        with pytest.raises(JobError, match=r"of_view is a view: a load takes tables of Parquet, ORC and Delta Lake"):
            load(f"table:{schema}.of_view", constants=SET, dry_run=dry_run)
    with pytest.raises(JobError, match="has more than one JSON value"):
        load(folder, format="json", constants=SET)


@pytest.mark.soak
@pytest.mark.every_case
def test_tables_of_typed_columns_are_loaded_by_name_in_the_format_that_the_catalog_names(
    load: Load, schema: str
) -> None:
    for kind in ("parquet", "orc"):
        assert load(f"table:{schema}.of_{kind}", constants=SET).sent == 1
        again = load(f"table:{schema}.of_{kind}", constants=SET)
        assert (again.sent, again.sent_before) == (0, 1)
