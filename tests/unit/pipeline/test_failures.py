"""What a job failed of is told in one line, out of the tracebacks that come with it."""

from __future__ import annotations

import pytest

from light_scheduler.cli.pipeline.running import reason_of

FROM_A_WORKER = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "task.py", line 76, in __call__
    loader = _Loader(self, piece, open_loader)
cimpl.KafkaException: KafkaError{code=MSG_SIZE_TOO_LARGE,val=10,str="Broker: Message size too large"}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:665)
Caused by: java.io.IOException: broken pipe
"""
FROM_JAVA = "[PATH_NOT_FOUND] Path does not exist: file:/none.\n\tat org.apache.spark.sql.X\norg.apache.spark.Error: no"

FROM_PY4J = """An error occurred while calling o73.load.
: org.apache.spark.SparkException: [CLUSTER] The cluster is gone.
\tat org.apache.spark.sql.X"""
NO_DELTA = """An error occurred while calling o73.sql.
: org.apache.spark.SparkException: Cannot find catalog plugin class for catalog 'spark_catalog': org.apache.spark.sql.\
delta.catalog.DeltaCatalog."""
NO_DELTA_OF_PYTHON = "'JavaPackage' object is not callable"
NO_S3A = """An error occurred while calling o73.parquet.
: java.lang.RuntimeException: java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found
"""


NO_FILE = """An error occurred while calling o73.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:/part-0.
File does not exist. It is possible the underlying files have been updated.
"""


MALFORMED = """An error occurred while calling o1005.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/a/b.csv.
\tat org.apache.spark.sql.X
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are \
detected in record parsing: [x,2030-01-01T00:00:00.000Z,Hello].
Parse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' as 'PERMISSIVE'.
"""
NO_JSON = """: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are \
detected in record parsing: _corrupt_record.
Parse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' as 'PERMISSIVE'.
"""


def test_a_malformed_row_is_told_with_its_file_and_what_to_do() -> None:
    reason = reason_of(RuntimeError(MALFORMED))
    assert reason.startswith("the row [x,2030-01-01T00:00:00.000Z,Hello] of file:/a/b.csv is malformed: it has more")
    assert "--read-option mode=DROPMALFORMED" in reason
    assert reason_of(RuntimeError(NO_JSON)).startswith("a line of the table is no JSON: mend it")


@pytest.mark.parametrize(
    ("text", "package"),
    [(NO_DELTA, "io.delta:delta-spark"), (NO_DELTA_OF_PYTHON, "io.delta:delta-spark"), (NO_S3A, "hadoop-aws")],
)
def test_jars_that_are_missing_are_named_with_what_to_do(text: str, package: str) -> None:
    reason = reason_of(RuntimeError(text))
    assert package in reason
    assert "--jar" in reason
    assert "o73" not in reason


def test_a_file_that_is_gone_is_told_with_what_to_do() -> None:
    reason = reason_of(RuntimeError(NO_FILE))
    assert reason.startswith("a file of the table is gone")
    assert "--name" in reason


@pytest.mark.parametrize(
    "error",
    ["sqlite3.OperationalError: database or disk is full", "java.io.IOException: No space left on device"],
    ids=["of a task in Python", "of Spark"],
)
def test_a_full_disk_is_told_with_the_setting_that_names_another(error: str) -> None:
    text = FROM_A_WORKER.replace("cimpl.KafkaException: KafkaError", error)
    assert "spark.local.dir" in reason_of(RuntimeError(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            FROM_A_WORKER,
            'cimpl.KafkaException: KafkaError{code=MSG_SIZE_TOO_LARGE,val=10,str="Broker: Message size too large"}',
        ),
        (FROM_JAVA, "[PATH_NOT_FOUND] Path does not exist: file:/none."),
        (FROM_PY4J, "org.apache.spark.SparkException: [CLUSTER] The cluster is gone."),
        ("", "RuntimeError"),
    ],
)
def test_the_line_that_names_the_error_in_python_is_the_reason_else_the_first(text: str, reason: str) -> None:
    assert reason_of(RuntimeError(text)) == reason
