"""`light-scheduler pipeline import`: restores an export in another application."""

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
@format_option("Format of the table.", "parquet", "json", "delta")
@click.option(
    "--map-topic",
    "topics",
    type=Pairs(metavar="OLD=NEW"),
    multiple=True,
    help="New name of a target topic or commands topic. Can be repeated.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Import even if the application has schedules. Schedules with the same id are replaced.",
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
    """Restore schedules from TABLE, which `export` wrote. They fire at the same instants, with the same content.

    A series keeps its sequence, its attempt, its pause, and the firings that wait for their completion. Before you
    import, stop the application's workers and create its topics. The number of partitions may differ: each schedule
    goes to the partition of its key. Without --replace, the import is refused if the application has schedules.
    """

    mapped = _mapped(topics)

    def job(spark: SparkSession, progress: Progress) -> ImportSummary:
        from light_scheduler.engine.limits import Limits
        from light_scheduler.pipeline.importing import ImportOptions, main
        from light_scheduler.wire import dialect_named

        options = ImportOptions(
            table=table,
            cluster=cluster_of(settings, client),
            app_id=settings.app_id,
            commands_topics=tuple(topic.name for topic in settings.inputs),
            keyed_topics=frozenset(topic.name for topic in settings.inputs if dialect_named(topic.dialect).forwards),
            limits=Limits.of(settings),
            format=format,
            topics=mapped,
            replace=replace,
        )
        return main(spark, options, progress)

    run(job, volume=lambda summary: (summary.written, summary.bytes), delta=format == "delta")


def _mapped(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the new name of each topic. Raises click.UsageError if a topic has two."""
    topics: dict[str, str] = {}
    for old, new in pairs:
        if topics.setdefault(old, new) != new:
            raise click.UsageError(f"--map-topic maps {old} to both {topics[old]} and {new}: give it one new name")
    return topics
