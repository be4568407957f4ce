"""`light-scheduler dry-run`: shows the effects of commands without sending them."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from itertools import islice

import click
from rich.table import Table

from light_scheduler.clock import SystemClock
from light_scheduler.dry_run import DAY_MS, Answer, Delivery, DryRun
from light_scheduler.settings import Settings
from light_scheduler.wire import format_instant

from .examples import examples
from .instants import Instant
from .options import settings_options, tenant_option
from .output import Output, output_option
from .schedule_output import print_whole, shown
from .verbosity import warn

MOST_KEY_BYTES = 60


@click.command(
    "dry-run",
    epilog=examples(
        "dry-run --from-file commands.jsonl",
        "dry-run --from-file - --from 2030-01-01T00:00:00Z --until 2030-02-01T00:00:00Z --json",
    ),
)
@click.option(
    "--from-file",
    "path",
    type=click.Path(dir_okay=False, allow_dash=True),
    required=True,
    metavar="FILE",
    help="JSON Lines; - is stdin.",
)
@click.option(
    "--from",
    "start",
    type=Instant(lower_bound=True),
    metavar="INSTANT",
    help="Instant at which all commands arrive. Default: now.",
)
@click.option(
    "--until",
    "end",
    type=Instant(),
    metavar="INSTANT",
    help="Show messages that are due up to this instant. Default: a day after --from.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=1_000,
    show_default=True,
    help="Maximum number of messages to show.",
)
@tenant_option
@output_option()
@settings_options("app_id", "max_payload_bytes", "max_id_bytes", "lookback_minutes", "missed")
def command(
    settings: Settings, path: str, start: int | None, end: int | None, limit: int, tenant: str, output: Output
) -> None:
    """Show what commands would deliver and when, and which would be refused. Needs neither a broker nor a worker.

    Each line is a command in the JSON form that HTTP takes; "command" defaults to "schedule", "tenant" to --tenant.
    The dry run assumes that every target topic exists, and that no consumer completes a firing. It does not know the
    rules of tenants.

    Exit code 1: a command would be refused, or finds no schedule.
    """
    start = SystemClock().now() if start is None else start
    until = start + DAY_MS if end is None else end
    if until < start:
        raise click.BadParameter(f"is before --from, {format_instant(start)}", param_hint="--until")
    run = DryRun(_lines(path), start, settings, tenant=tenant)
    found = list(islice(run.deliveries(until), limit + 1))
    deliveries, complete = found[:limit], len(found) <= limit
    if not output.is_table:
        from light_scheduler.web.dry_run_document import DryRunDocument

        output.print(DryRunDocument.of(run, deliveries, complete=complete))
    else:
        _show(deliveries)
        for letter in run.undelivered:
            due = "" if letter.due is None else f" due {format_instant(letter.due)}"
            click.echo(f"not delivered: {letter.tenant}/{letter.id}{due}: {letter.reason}", err=True)
        for answer in run.answers:
            _report(answer)
        if not complete:
            warn(f"there are more than {limit} messages: raise --limit")
    if any(answer.is_refused for answer in run.answers):
        sys.exit(1)


def _lines(path: str) -> list[bytes]:
    """Return the lines of a JSON Lines file, as `schedule --from-file` reads them. Raises click.BadParameter."""
    if path.endswith(".csv"):
        reason = f"{path} is CSV: give JSON Lines, a command in the JSON form in each line"
        raise click.BadParameter(reason, param_hint="--from-file")
    try:
        with click.open_file(path, "rb") as file:
            lines: list[bytes] = file.readlines()
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror}", param_hint="--from-file") from None
    return [lines[0].removeprefix(BOM_UTF8), *lines[1:]] if lines else []


def _show(deliveries: list[Delivery]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("delivered (UTC)", "schedule", "topic", "key"):
        table.add_column(name, no_wrap=True)
    for name in ("sequence", "attempt", "bytes"):
        table.add_column(name, no_wrap=True, justify="right")
    for topic, firing in ((delivery.topic, delivery.firing) for delivery in deliveries):
        table.add_row(
            format_instant(firing.fired_at),
            shown(f"{firing.tenant}/{firing.id}"),
            shown(topic),
            shown("" if firing.key is None else firing.key[:MOST_KEY_BYTES].decode(errors="replace")),
            str(firing.sequence),
            str(firing.attempt),
            "null" if firing.payload is None else str(len(firing.payload)),
        )
    print_whole(table)


def _report(answer: Answer) -> None:
    """Report which line and field of a refused command are invalid."""
    if not answer.is_refused:
        return
    reason = f"{answer.field}: {answer.reason}" if answer.field else str(answer.reason)
    name = "" if answer.id is None else f"{answer.tenant}/{answer.id}: "
    click.echo(f"line {answer.line}: {answer.outcome}: {name}{reason}", err=True)
