"""Jobs use what Spark Connect has: nothing of Java behind the objects in Python."""

from __future__ import annotations

import ast
from pathlib import Path
from unittest.mock import MagicMock, PropertyMock

import pytest
from pyspark.errors import AnalysisException

import light_scheduler
from light_scheduler.errors import JobError
from light_scheduler.pipeline.load.commits import Commit, CommitLog
from light_scheduler.pipeline.load.versions import TableVersion

ROOT = Path(light_scheduler.__file__).parent
MODULES = sorted([*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "cli" / "pipeline").rglob("*.py")])
OF_JAVA = {"_jvm", "_jdf", "_jsc", "_jsparkSession", "_jconf", "_gateway", "_jreader", "_jwrite", "_jrdd", "_jschema"}
CONTEXT = {"sparkContext", "rdd"}
"""What a session of Spark Connect has not. Whoever asks for it has to do without."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_job_reaches_through_to_java(path: Path) -> None:
    names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert not names & OF_JAVA
    if path.name not in ("job.py", "progress.py"):
        assert not names & CONTEXT


def test_files_that_are_gone_are_noticed_where_a_table_is_looked_for_when_its_columns_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark = MagicMock()
    lazy = spark.read.format.return_value.load.return_value
    type(lazy).columns = PropertyMock(side_effect=AnalysisException("[PATH_NOT_FOUND] Path does not exist: /t/1"))
    table = TableVersion(spark, "/t", {}, "id", version=2, root="/t")
    monkeypatch.setattr(CommitLog, "commits", lambda _, since, until: {until: Commit(set(), {f"/t/{since}"}, {})})
    monkeypatch.setattr(TableVersion, "_whole", lambda _, version: MagicMock(inputFiles=lambda: [f"/t/{version}"]))
    with pytest.raises(JobError, match="VACUUM has deleted files of version 1"):
        table.gone(1, 2)
