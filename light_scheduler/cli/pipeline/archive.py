"""`light-scheduler pipeline archive`: topics into a lake table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from light_scheduler.cli.durations import Duration
from light_scheduler.host.foreground import stop_event
from light_scheduler.settings import Settings

from .running import Run, cluster_of, job_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.archive import ArchiveSummary
    from light_scheduler.pipeline.job import Progress

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline archive /data/archive
  light-scheduler pipeline archive s3a://bucket/archive --continuous --topic reminders
"""


@click.command("archive", epilog=_EXAMPLES)
@click.argument("path")
@click.option(
    "--topic", "more", multiple=True, metavar="TOPIC", help="A topic to archive besides the application's; repeatable."
)
@click.option(
    "--once/--continuous",
    default=True,
    show_default=True,
    help="Stop with what is there now, or go on until Ctrl-C or SIGTERM, which is a normal end: exit code 0.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=500_000,
    show_default=True,
    metavar="N",
    help="Records of a micro-batch, about.",
)
@click.option(
    "--compact-every", type=Duration(), default="10m", show_default=True, help="How often --continuous compacts files."
)
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Go on if records were deleted before they were archived, or a topic was deleted and created again.",
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
    allow_data_loss: bool,
) -> None:
    """Keep commands, history, results and dead letters in the Delta table PATH: each record once.

    Run it again, or after it was killed, and it goes on where it was.
    """

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
            allow_data_loss=allow_data_loss,
        )
        if once:
            return main(spark, options, progress)
        with stop_event() as stop:
            return main(spark, replace(options, stop=stop), progress)

    run(job, delta=True)
