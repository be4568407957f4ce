"""Delta Lake's jars. Spark's own `spark.jars.packages` fails if a local Maven folder lacks some of them."""

from __future__ import annotations

from pathlib import Path

from light_scheduler.host.jars import Library, jars_of

DELTA = Library(
    "Delta Lake 4.4.0",
    ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    95_000_000,
)


def delta_jars() -> list[Path]:
    """Return Delta's own jars, downloading missing ones. Spark has their dependencies. Raises as `jars_of`."""
    return [path for path in jars_of(DELTA) if path.name.startswith(("delta-spark", "delta-storage"))]
