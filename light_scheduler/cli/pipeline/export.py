"""`light-scheduler pipeline export`: writes all pending schedules to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from light_scheduler.settings import Settings

from .running import Run, cluster_of, format_option, job_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.export import ExportSummary
    from light_scheduler.pipeline.job import Progress

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline export schedules.parquet
  light-scheduler pipeline export backup --format delta --app-id orders --broker kafka://kafka-1:9092
"""


@click.command("export", epilog=_EXAMPLES)
@click.argument("table")
@format_option("Format of the table.", "parquet", "json", "delta")
@job_options("commands_topics")
def command(settings: Settings, client: dict[str, str], run: Run, table: str, format: str) -> None:
    """Write all pending schedules to TABLE. An existing table is replaced.

    Columns are named like command headers, and show how far each schedule has come. `import` needs the column `record`.
    Workers can run during the export.
    """

    def job(spark: SparkSession, progress: Progress) -> ExportSummary:
        from light_scheduler.pipeline.export import ExportOptions, main

        options = ExportOptions(
            table=table,
            cluster=cluster_of(settings, client),
            app_id=settings.app_id,
            commands_topics=tuple(topic.name for topic in settings.inputs),
            format=format,
        )
        return main(spark, options, progress)

    run(job, volume=lambda summary: (summary.schedules, summary.bytes), delta=format == "delta")
