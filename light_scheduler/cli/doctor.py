"""`light-scheduler doctor`: checks whether everything that a worker needs is in place."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from light_scheduler.kafka.job_rights import JOBS, Job
from light_scheduler.settings import Settings

from .examples import examples
from .interruption import interruptible
from .options import settings_options
from .output import Output, output_option
from .verbosity import status


@click.command("doctor", epilog=examples("doctor", "doctor --broker kafka://kafka-1:9092 --json", "doctor --job audit"))
@settings_options(
    "app_id",
    "broker",
    "data_dir",
    "web_host",
    "web_port",
    "insecure",
    "partitions",
    "commands_topics",
    "delays",
    "session_timeout",
    "transaction_timeout",
)
@click.option(
    "--job",
    type=click.Choice(JOBS),
    help="Check only the rights in Kafka that this pipeline job needs, instead of all that a worker needs.",
)
@click.option(
    "--target",
    "targets",
    metavar="TOPIC",
    multiple=True,
    help="Also check the rights on this target topic. Can be given several times. Without it, doctor knows only the "
    "targets in the rules of tenants.",
)
@output_option()
def command(settings: Settings, job: Job | None, targets: tuple[str, ...], output: Output) -> None:
    """Check broker, topics, rights, access, clock and disk, and print what to do.

    Exit code 1: a worker cannot run here, or (--job) this user lacks rights that the job needs.
    """
    from light_scheduler.doctor.job_checks import run_job_checks
    from light_scheduler.doctor.run_checks import run_checks

    from .findings import COLOURS

    with status("Checking"):
        checks = interruptible(
            lambda: list(
                run_checks(settings, targets=targets) if job is None else run_job_checks(settings, job, targets)
            )
        )
    failed = any(check.status == "fail" for check in checks)
    if not output.is_table:
        output.print({"ok": not failed, "checks": checks}, rows="checks")
    else:
        console = Console()
        table = Table("Check", "", "What was found")
        for check in checks:
            table.add_row(check.name, Text(check.status, COLOURS[check.status]), Text(check.detail))
        console.print(table)
        fixes = list(dict.fromkeys(check.fix for check in checks if check.fix))
        if fixes:
            console.print("To do:")
        for fix in fixes:
            console.print(Text(f"  {fix}"), soft_wrap=True)
    if failed:
        sys.exit(1)
