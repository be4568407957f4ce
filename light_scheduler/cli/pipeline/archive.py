"""`light-scheduler pipeline archive`: copies topics into a lake table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from light_scheduler.cli.durations import Duration
from light_scheduler.host.foreground import stop_event
from light_scheduler.settings import Settings

from .running import Run, cluster_of, job_options, require_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.archive import ArchiveSummary
    from light_scheduler.pipeline.job import Progress

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline archive /data/archive
  light-scheduler pipeline archive s3a://bucket/archive --continuous --topic reminders
"""


_LEAST_VACUUM_MS = 7 * 86_400_000


@click.command("archive", epilog=_EXAMPLES)
@click.argument("path")
@click.option("--topic", "more", multiple=True, metavar="TOPIC", help="Archive this topic as well. Can be repeated.")
@click.option(
    "--once/--continuous",
    default=True,
    show_default=True,
    help="Stop at the end of the topics, or run until Ctrl-C or SIGTERM, with exit code 0.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=500_000,
    show_default=True,
    metavar="N",
    help="Approximate number of records in a micro-batch.",
)
@click.option(
    "--compact-every",
    type=Duration(),
    default="10m",
    show_default=True,
    help="With --continuous: how often to merge small files.",
)
@click.option(
    "--vacuum",
    type=Duration(),
    help="At the end, delete files that the table stopped using at least this long ago. Minimum: 7d.",
)
@click.option(
    "--by-tenant",
    is_flag=True,
    help="Partition a new table by tenant as well as by topic and day. Suits up to a few hundred tenants.",
)
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Continue even if records were deleted before they were archived, or a topic was deleted and created again.",
)
@job_options("commands_topics")
def command(
    settings: Settings,
    client: dict[str, str],
    run: Run,
    path: str,
    more: tuple[str, ...],
    once: bool,
    batch: int,
    compact_every: int,
    vacuum: int | None,
    by_tenant: bool,
    allow_data_loss: bool,
) -> None:
    """Copy commands, history, results and dead letters into the Delta table PATH, each record once.

    PATH can be `table:NAME`, a table in Spark's catalog, which is created if it is missing.
    The next run continues where the last one stopped, even if it was killed.
    """

    if once:
        require_with("--continuous", "compact_every")
    if vacuum is not None and vacuum < _LEAST_VACUUM_MS:
        raise click.UsageError("--vacuum must be at least 7d: jobs that read or write the table may need newer files")

    def job(spark: SparkSession, progress: Progress) -> ArchiveSummary:
        from light_scheduler.pipeline.archive import ArchiveOptions, main

        names = settings.topics
        own = [source.name for source in settings.inputs] + [names.history, names.results, names.dead_letters]
        options = ArchiveOptions(
            cluster=cluster_of(settings, client),
            topics=list(dict.fromkeys((*own, *more))),
            path=path,
            batch=batch,
            continuous=not once,
            compact_every=max(1, compact_every // 1_000),
            vacuum=vacuum,
            allow_data_loss=allow_data_loss,
            by_tenant=by_tenant,
            json_topics=[
                names.history,
                names.results,
                *(each.name for each in settings.inputs if each.dialect == "json"),
            ],
        )
        if once:
            return main(spark, options, progress)
        with stop_event() as stop:
            return main(spark, replace(options, stop=stop), progress)

    run(job, volume=lambda summary: (summary.records, summary.added_bytes), delta=True)
