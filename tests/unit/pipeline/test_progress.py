"""What a job shows while it runs."""

from __future__ import annotations

from io import StringIO
from typing import Any

from pyspark.errors import PySparkAttributeError
from rich.console import Console

from light_scheduler.cli.pipeline.progress import SparkProgress


class Connected:
    """A session of Spark Connect, as far as a progress knows it."""

    @property
    def sparkContext(self) -> Any:  # noqa: N802 (Spark's name)
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": "sparkContext"}
        )


def test_phases_work_without_a_spark_context() -> None:
    session: Any = Connected()
    shown = StringIO()
    with SparkProgress(Console(file=shown)) as progress, progress.watching(session), progress.phase("Counting sheep"):
        assert shown.getvalue() == "Counting sheep\n"
