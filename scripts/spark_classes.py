"""Archive the classes that Spark's drivers load in build/, for tests that start one, unless the archive exists.

Java reads and verifies 20,000 classes at each start: seven seconds of processor time, which an archive saves (JEP 350).
Tests work without it, and Java ignores one that does not match its version and classpath. So failures are reported, but
the script succeeds.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from pyspark import SparkContext
from pyspark.sql import SparkSession
from support.jobs import CLASSES, UNHEARD, WITHOUT_CLASSES

from light_scheduler.pipeline.session import SessionOptions, java_is_here, spark_session

TIMEOUT_S = 600.0
"""Time-out of the end of the session, when Java writes the archive."""


def main() -> None:
    if not CLASSES.exists() and java_is_here():
        CLASSES.parent.mkdir(parents=True, exist_ok=True)
        try:
            keep()
        except Exception as error:  # noqa: BLE001  # of Python, Py4J or Java
            print(error, file=sys.stderr)
    print(f"Classes of Spark: {CLASSES if CLASSES.exists() else 'not kept, so tests of jobs take longer'}")


def keep() -> None:
    """Run a session that does what jobs do, and archive the loaded classes."""
    unfinished = CLASSES.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    java = f"{WITHOUT_CLASSES} {UNHEARD} -XX:ArchiveClassesAtExit={unfinished}"
    options = SessionOptions(master="local[2]", delta=True, configs={"spark.driver.extraJavaOptions": java})
    with tempfile.TemporaryDirectory() as folder, spark_session("classes", options) as spark:
        work(spark, Path(folder))
    gateway = SparkContext._gateway
    assert gateway is not None
    process = gateway.proc
    process.stdin.close()  # this makes PySpark end it
    try:
        is_done = process.wait(timeout=TIMEOUT_S) == 0
    finally:
        process.kill()
    if is_done and unfinished.exists():
        unfinished.replace(CLASSES)


def work(spark: SparkSession, folder: Path) -> None:
    """Write and read Delta and Parquet, join, count and sort, with a Python function in between."""
    rows = spark.range(1_000).selectExpr("id", "id % 7 as part")
    for _ in range(2):
        rows.write.format("delta").mode("append").partitionBy("part").save(str(folder / "delta"))
    rows.write.parquet(str(folder / "parquet"))
    table, other = spark.read.format("delta").load(str(folder / "delta")), spark.read.parquet(str(folder / "parquet"))
    joined = table.join(other.withColumnRenamed("part", "other"), "id")
    joined.groupBy("other").count().where("count > 0").orderBy("other").collect()
    table.mapInPandas(lambda batches: batches, "id long, part long").count()


if __name__ == "__main__":
    main()
