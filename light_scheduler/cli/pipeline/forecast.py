"""`light-scheduler pipeline forecast`: counts upcoming firings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from light_scheduler.cli.durations import Duration
from light_scheduler.settings import Settings

from .running import Run, cluster_of, job_options, report_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.forecast import ForecastSummary
    from light_scheduler.pipeline.job import Progress

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline forecast --report load.html
  light-scheduler pipeline forecast --ahead 7d --table load --json
"""


@click.command("forecast", epilog=_EXAMPLES)
@click.option("--ahead", type=Duration(), default="1d", show_default=True, help="How far to look ahead.")
@click.option("--table", metavar="PATH", help="Write the counts per minute to this table, as Parquet.")
@report_option
@job_options("commands_topics")
def command(
    settings: Settings, client: dict[str, str], run: Run, ahead: int, table: str | None, report: str | None
) -> None:
    """Count the firings due in each minute ahead, including series, by tenant and target topic."""

    def job(spark: SparkSession, progress: Progress) -> ForecastSummary:
        from light_scheduler.pipeline.forecast import ForecastOptions, main

        options = ForecastOptions(
            cluster=cluster_of(settings, client),
            names=settings.topics,
            inputs=[source.name for source in settings.inputs],
            ahead=ahead,
            table=table,
            page=report,
        )
        return main(spark, options, progress)

    run(job, volume=lambda summary: (summary.schedules, summary.bytes))
