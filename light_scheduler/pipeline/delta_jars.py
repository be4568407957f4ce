"""Delta Lake's jars. Spark's own `spark.jars.packages` trips over them where a local Maven folder lacks some."""

from __future__ import annotations

from pathlib import Path

from light_scheduler.host.jars import Library, jars_of

DELTA = Library(
    "Delta Lake 4.4.0",
    ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    95_000_000,
)


def delta_jars() -> list[Path]:
    """Return Delta's own jars, downloading what is missing; all else that they name, Spark has. Raises as `jars_of`."""
    return [path for path in jars_of(DELTA) if path.name.startswith(("delta-spark", "delta-storage"))]
