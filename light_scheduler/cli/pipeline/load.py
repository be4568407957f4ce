"""`light-scheduler pipeline load`: sends the schedules of a table as commands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from light_scheduler.cli.answers import native_topic
from light_scheduler.cli.durations import Duration
from light_scheduler.host.foreground import stop_event
from light_scheduler.settings import Settings

from .running import Pairs, Run, cluster_of, format_option, job_options, require_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.job import Progress
    from light_scheduler.pipeline.load import LoadSummary

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline load reminders.csv --format csv --set target-topic=reminders
  light-scheduler pipeline load s3a://bucket/schedules --refused refused.parquet
  light-scheduler pipeline load schedules.parquet --dry-run --json
"""


@click.command("load", epilog=_EXAMPLES)
@click.argument("table")
@format_option("Format of the table.", "parquet", "csv", "json", "delta")
@click.option("--refused", metavar="PATH", help="Write refused rows to this table, as Parquet.")
@click.option(
    "--set",
    "constants",
    type=Pairs(),
    multiple=True,
    help="Set a field to the same value for all rows. Can be repeated.",
)
@click.option("--ignore", "ignored", multiple=True, metavar="COLUMN", help="Ignore this column. Can be repeated.")
@click.option(
    "--read-option",
    "reading",
    type=Pairs(),
    multiple=True,
    help="Option of Spark's reader, such as sep=;. Can be repeated.",
)
@click.option(
    "--name",
    default="light-scheduler-load",
    show_default=True,
    help="Name of this load. Rows already sent under the same name are skipped.",
)
@click.option(
    "--send-past",
    is_flag=True,
    help="Send one-shots whose time has passed even if an earlier version of their file was loaded.",
)
@click.option(
    "--cancel-deleted",
    is_flag=True,
    help="Cancel schedules whose rows were deleted from a Delta table since its last load.",
)
@click.option(
    "--once/--continuous",
    default=True,
    show_default=True,
    help="Stop at the end of the table, or keep loading new versions of a Delta table, or new files in a folder, until "
    "Ctrl-C or SIGTERM. --continuous needs --refused.",
)
@click.option(
    "--every",
    type=Duration(),
    default="10s",
    show_default=True,
    help="With --continuous: how often to look for new data.",
)
@click.option(
    "--checkpoint",
    metavar="PATH",
    help="With --continuous: folder for the position in a stream of files. Default: a folder of this load in "
    "spark.sql.streaming.checkpointLocation, if Spark is configured with it. Without either, the next run reads all "
    "files again, but sends nothing twice.",
)
@click.option("--dry-run", is_flag=True, help="Check all rows without sending any.")
@job_options("commands_topics", "max_payload_bytes", "max_id_bytes")
def command(
    settings: Settings,
    client: dict[str, str],
    run: Run,
    table: str,
    format: str,
    refused: str | None,
    constants: tuple[tuple[str, str], ...],
    ignored: tuple[str, ...],
    reading: tuple[tuple[str, str], ...],
    name: str,
    send_past: bool,
    cancel_deleted: bool,
    once: bool,
    every: int,
    checkpoint: str | None,
    dry_run: bool,
) -> None:
    """Load schedules from the files or the folder TABLE. Each row is sent once, even if you run the job again.

    Columns are named like command headers without their prefix (at, cron, target-topic, ...), or key, payload and
    headers. Exit code 1: some rows were refused. All others were sent.
    """
    if once:
        require_with("--continuous", "every", "checkpoint")
    else:
        _check_continuous(format, refused, checkpoint, reading, dry_run=dry_run)
    if cancel_deleted:
        _check_cancelling(format, reading, dry_run=dry_run)

    def job(spark: SparkSession, progress: Progress) -> LoadSummary:
        from light_scheduler.engine.limits import Limits
        from light_scheduler.pipeline.load import LoadOptions, main

        options = LoadOptions(
            table=table,
            cluster=cluster_of(settings, client),
            commands_topic=native_topic(settings),
            marks_topic=settings.topics.loads,
            format=format,
            refused=refused,
            constants=dict(constants),
            ignored=ignored,
            reading=dict(reading),
            limits=Limits.of(settings),
            name=name,
            sends_past=send_past,
            cancels_deleted=cancel_deleted,
            dry_run=dry_run,
        )
        if once:
            return main(spark, options, progress)
        with stop_event() as stop:
            going_on = replace(options, every_s=every / 1_000, checkpoint=checkpoint, stop=stop)
            return main(spark, going_on, progress)

    run(job, volume=lambda summary: (summary.rows, summary.bytes), delta=format == "delta")


def _check_continuous(
    format: str, refused: str | None, checkpoint: str | None, reading: tuple[tuple[str, str], ...], *, dry_run: bool
) -> None:
    """Raise UsageError if --continuous conflicts with other options."""
    if dry_run or refused is None:
        raise click.UsageError(f"--continuous {'takes no --dry-run' if dry_run else 'needs --refused'}")
    if format == "delta" and checkpoint is not None:
        raise click.UsageError(
            "--checkpoint is for files: how far a Delta table is loaded is stored in Kafka. Leave it out"
        )
    if _names_version(reading):
        raise click.UsageError("--continuous looks for new versions: leave out versionAsOf and timestampAsOf")


def _check_cancelling(format: str, reading: tuple[tuple[str, str], ...], *, dry_run: bool) -> None:
    """Raise UsageError if --cancel-deleted conflicts with other options."""
    if format != "delta":
        raise click.UsageError("--cancel-deleted needs --format delta: only its versions tell which rows were deleted")
    if dry_run or _names_version(reading):
        which = "--dry-run" if dry_run else "versionAsOf and timestampAsOf"
        raise click.UsageError(f"--cancel-deleted compares with the last load: leave out {which}")


def _names_version(reading: tuple[tuple[str, str], ...]) -> bool:
    return not {"versionasof", "timestampasof"}.isdisjoint(option.lower() for option, _ in reading)
