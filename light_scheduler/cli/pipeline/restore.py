"""`light-scheduler pipeline import`: what `export` wrote, into another application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from light_scheduler.settings import Settings

from .running import Pairs, Run, cluster_of, format_option, job_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.job import Progress
    from light_scheduler.pipeline.restore import RestoreSummary

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline import schedules.parquet --broker kafka://new-cluster:9092
  light-scheduler pipeline import schedules.parquet --app-id orders-2 --map-topic reminders=reminders-2
"""


@click.command("import", epilog=_EXAMPLES)
@click.argument("table")
@format_option("What the table is.", "parquet", "json", "delta")
@click.option(
    "--map-topic",
    "topics",
    type=Pairs(metavar="OLD=NEW"),
    multiple=True,
    help="A topic that has another name here: one that messages go to, or a commands topic; repeatable.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Import beside schedules that are there, and in the place of those that have the same id.",
)
@job_options("commands_topics")
def command(
    settings: Settings,
    client: dict[str, str],
    run: Run,
    table: str,
    format: str,
    topics: tuple[tuple[str, str], ...],
    replace: bool,
) -> None:
    """Restore the schedules of TABLE, which `export` wrote: they fire when they would have, with the same content.

    All that there is to a series is kept: its sequence, its attempt, whether it is paused, what waits for completion.
    The workers of the application have to be stopped, and its topics made with as many partitions as before. Unless
    told otherwise, it refuses to add to schedules that are there.
    """

    def job(spark: SparkSession, progress: Progress) -> RestoreSummary:
        from light_scheduler.pipeline.restore import RestoreOptions, main

        options = RestoreOptions(
            table=table,
            cluster=cluster_of(settings, client),
            app_id=settings.app_id,
            commands_topics=tuple(topic.name for topic in settings.inputs),
            internal_topics=settings.internal_topics,
            format=format,
            topics=dict(topics),
            replace=replace,
        )
        return main(spark, options, progress)

    run(job, delta=format == "delta")
