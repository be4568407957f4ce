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


NO_FOOTER = """An error occurred while calling o84.load.
: org.apache.spark.SparkException: [FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file \
file:/rows/a.parquet. Could not read footer. Please ensure that the file is in either ORC or Parquet format.
\tat org.apache.spark.sql.X
"""
NO_PARQUET = """An error occurred while calling o84.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/rows/a.parquet.
\tat org.apache.spark.sql.X
Caused by: java.lang.RuntimeException: file:/rows/a.parquet is not a Parquet file. Expected magic number at tail
"""


OTHER_COLUMNS = """[CONFLICTING_PARTITION_COLUMN_NAMES] Conflicting partition column names detected:

\tPartition column name list #0: tenant
\tPartition column name list #1: tenant, priority

For partitioned table directories, data files should only live in leaf directories.
And directories at the same level should have the same partition column name.
Please check the following directories for unexpected files or inconsistent partition column names:

\tfile:/rows/tenant=a
\tfile:/rows/tenant=a/priority=1 SQLSTATE: KD009"""
OTHER_FOLDERS = """[CONFLICTING_DIRECTORY_STRUCTURES] Conflicting directory structures detected.
Suspicious paths:

\tfile:/rows
\tfile:/rows/sub

If provided paths are partition directories, please set "basePath" in the options of the data source. SQLSTATE: KD009"""
NEW_FOLDERS = """[STREAM_FAILED] Query [id = a2f0] terminated with exception: assertion failed: Invalid batch: id#4 != \
id#6"""


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
    assert reason_of(RuntimeError(NO_JSON)).startswith("a line of the table is not JSON: fix it")


@pytest.mark.parametrize("text", [NO_FOOTER, NO_PARQUET])
def test_a_file_that_is_cut_off_is_named_with_what_to_do(text: str) -> None:
    reason = reason_of(RuntimeError(text))
    assert reason.startswith("file:/rows/a.parquet is no whole Parquet file")
    assert "Put a whole copy in its place" in reason


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        (OTHER_COLUMNS, "file:/rows/tenant=a and file:/rows/tenant=a/priority=1 have"),
        (OTHER_FOLDERS, "file:/rows and file:/rows/sub have"),
    ],
)
def test_folders_with_other_columns_are_named_with_what_to_do(text: str, folders: str) -> None:
    reason = reason_of(RuntimeError(text))
    assert reason.startswith(folders)
    assert "recursiveFileLookup=true" in reason


def test_folders_with_columns_that_come_later_are_told_with_what_to_do() -> None:
    assert reason_of(RuntimeError(NEW_FOLDERS)).endswith("since the load began: start the load again")


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
