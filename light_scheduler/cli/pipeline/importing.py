"""`light-scheduler pipeline import`: what `export` wrote, into another application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from light_scheduler.settings import Settings

from .running import Pairs, Run, cluster_of, format_option, job_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.importing import ImportSummary
    from light_scheduler.pipeline.job import Progress

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
@job_options("commands_topics", "max_payload_bytes", "max_id_bytes")
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

    mapped = _mapped(topics)

    def job(spark: SparkSession, progress: Progress) -> ImportSummary:
        from light_scheduler.engine.limits import Limits
        from light_scheduler.pipeline.importing import ImportOptions, main

        options = ImportOptions(
            table=table,
            cluster=cluster_of(settings, client),
            app_id=settings.app_id,
            commands_topics=tuple(topic.name for topic in settings.inputs),
            limits=Limits(
                settings.max_payload_bytes, settings.max_id_bytes, settings.internal_topics, settings.answers_only
            ),
            format=format,
            topics=mapped,
            replace=replace,
        )
        return main(spark, options, progress)

    run(job, delta=format == "delta")


def _mapped(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the new name of each topic. Raises click.UsageError if one has two."""
    topics: dict[str, str] = {}
    for old, new in pairs:
        if topics.setdefault(old, new) != new:
            raise click.UsageError(f"--map-topic gives {old} two names, {topics[old]} and {new}: give it one")
    return topics
