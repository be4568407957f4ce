"""`light-scheduler pipeline report`: measures the punctuality of deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from light_scheduler.cli.instants import Instant
from light_scheduler.settings import Settings

from .running import Run, cluster_of, job_options, report_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.job import Progress
    from light_scheduler.pipeline.report import ReportSummary

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline report --report punctuality.html
  light-scheduler pipeline report --from 2026-11-01T00:00:00Z --archive /data/archive --json
"""


@click.command("report", epilog=_EXAMPLES)
@click.option(
    "--from", "start", type=Instant(lower_bound=True), default=0, metavar="INSTANT", help="Report from this instant on."
)
@click.option("--to", "end", type=Instant(), metavar="INSTANT", help="Report until this instant.")
@click.option("--archive", metavar="PATH", help="Read this table, which `archive` wrote, instead of the topic.")
@report_option
@job_options()
def command(
    settings: Settings,
    client: dict[str, str],
    run: Run,
    start: int,
    end: int | None,
    archive: str | None,
    report: str | None,
) -> None:
    """Report percentiles of lateness by hour, tenant, partition and target topic."""

    def job(spark: SparkSession, progress: Progress) -> ReportSummary:
        from light_scheduler.pipeline.report import ReportOptions, main

        cluster = cluster_of(settings, client)
        return main(spark, ReportOptions(cluster, settings.topics, start, end, archive, report), progress)

    run(job, volume=lambda summary: (sum(summary.events.values()), summary.bytes), delta=archive is not None)
