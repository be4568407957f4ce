"""`light-scheduler pipeline audit`: compares deliveries with commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from light_scheduler.cli.durations import Duration
from light_scheduler.cli.instants import Instant
from light_scheduler.settings import Settings
from light_scheduler.wire import dialect_named

from .running import Pairs, Run, cluster_of, job_options, report_option, require_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.audit import AuditSummary
    from light_scheduler.pipeline.job import Progress

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline audit --report audit.html
  light-scheduler pipeline audit --from 2026-11-01T00:00:00Z --to 2026-11-02T00:00:00Z --late 5s --json
  light-scheduler pipeline audit --since-last /data/audits --report today.html
"""


@click.command("audit", epilog=_EXAMPLES)
@click.option(
    "--from", "start", type=Instant(lower_bound=True), default=0, metavar="INSTANT", help="Audit from this instant on."
)
@click.option(
    "--to", "end", type=Instant(), metavar="INSTANT", help="Audit until this instant. Default: 10 seconds ago."
)
@click.option(
    "--late",
    "patience",
    type=Duration(),
    default="1m",
    show_default=True,
    help="Report a firing as late if it was delivered more than this after it was due.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TOPIC",
    help="Also read this target topic, besides those in the history. Can be repeated.",
)
@click.option(
    "--since-last",
    metavar="PATH",
    help="Audit only new records since the last audit with this path, and save the new position there. The first audit "
    "covers everything.",
)
@click.option("--archive", metavar="PATH", help="Read this table, which `archive` wrote, instead of the topics.")
@click.option(
    "--imported",
    metavar="TABLE",
    help="Table that was imported into this application. Its schedules count as pending before the first command.",
)
@click.option(
    "--imported-format",
    type=click.Choice(("parquet", "json", "delta")),
    default="parquet",
    show_default=True,
    help="Format of the imported table.",
)
@click.option(
    "--map-topic",
    "topics",
    type=Pairs(metavar="OLD=NEW"),
    multiple=True,
    help="The --map-topic of that import. Can be repeated.",
)
@report_option
@click.option("--faults", metavar="PATH", help="Write all faults to this table, as Parquet.")
@job_options(
    *(
        "commands_topics",
        "max_payload_bytes",
        "max_id_bytes",
        "lookback_minutes",
        "missed",
        "delivery_retries",
        "delays",
    )
)
def command(
    settings: Settings,
    client: dict[str, str],
    run: Run,
    start: int,
    end: int | None,
    patience: int,
    targets: tuple[str, ...],
    since_last: str | None,
    archive: str | None,
    imported: str | None,
    imported_format: str,
    topics: tuple[tuple[str, str], ...],
    report: str | None,
    faults: str | None,
) -> None:
    """Compare every delivered message with the commands and the history, and report every fault.

    Use the same settings as the workers. Exit code 1: there are faults.
    """

    for name, given in (("--from", start), ("--archive", archive)):
        if since_last is not None and given:
            raise click.UsageError(f"--since-last takes no {name}: it reads the topics from where the last audit ended")
    if imported is None:
        require_with("--imported", "imported_format", "topics")
    for source in settings.inputs:
        dialect_named(source.dialect)  # which may need a package: better known before Spark starts

    def job(spark: SparkSession, progress: Progress) -> AuditSummary:
        from light_scheduler.engine import FiringRules, Limits
        from light_scheduler.pipeline.audit import AuditOptions, Imported, main

        options = AuditOptions(
            cluster=cluster_of(settings, client),
            names=settings.topics,
            inputs={source.name: source.dialect for source in settings.inputs},
            rules=FiringRules(settings.lookback_minutes, settings.missed, settings.delivery_retries),
            limits=Limits.of(settings),
            start=start,
            end=end,
            patience=patience,
            targets=targets,
            archive=archive,
            since_last=since_last,
            imported=None if imported is None else Imported(imported, imported_format, dict(topics)),
            page=report,
            faults=faults,
            delays=settings.delays,
        )
        return main(spark, options, progress)

    run(job, volume=lambda summary: (summary.schedules, None), delta=archive is not None or imported_format == "delta")
