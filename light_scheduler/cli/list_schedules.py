"""`light-scheduler list`: pending schedules of the whole cluster, from any worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click
from rich.table import Table

from light_scheduler.clock import SystemClock
from light_scheduler.model import State
from light_scheduler.settings import Settings
from light_scheduler.tables.views import DEFAULT_LIMIT, Sort
from light_scheduler.wire.instants import format_instant

from .examples import examples
from .instants import InstantText
from .options import settings_options, tenant_option, url_option
from .output import Output, output_option
from .schedule_output import ask, print_whole, relative, shown, trigger_text
from .verbosity import note

if TYPE_CHECKING:
    from light_scheduler.web.cluster.worker_http import Parameters
    from light_scheduler.web.forms.documents import SchedulePage
    from light_scheduler.web.schedule_client import ScheduleReader


@click.command(
    "list",
    epilog=examples(
        "list --sort due --limit 20",
        "list --label team=billing --due-to 2030-01-01T00:00:00Z --all --json",
        "list --all -o jsonl",
    ),
)
@tenant_option
@click.option("--id-prefix", help="Only schedules whose id begins with this text.")
@click.option("--id-contains", help="Only schedules whose id contains this text.")
@click.option("--target-topic", help="Only schedules that deliver to this topic.")
@click.option(
    "--partition",
    metavar="TOPIC[N]",
    help="Only schedules in this partition of a commands topic, such as light-scheduler-commands[3].",
)
@click.option("--state", type=click.Choice(get_args(State)), help="Only schedules in this state.")
@click.option(
    "--label",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only schedules with this label. Repeat it to require several labels.",
)
@click.option("--label-contains", help="Only schedules with this text somewhere in a label, written as NAME=VALUE.")
@click.option(
    "--due-from",
    type=InstantText(),
    metavar="INSTANT",
    help="Only schedules due at this instant or later: UTC epoch ms, or RFC 3339.",
)
@click.option("--due-to", type=InstantText(), metavar="INSTANT", help="Only schedules due before this instant.")
@click.option("--sort", type=click.Choice(get_args(Sort)), default="id", show_default=True, help="Order of the list.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=DEFAULT_LIMIT, show_default=True, help="Maximum number of schedules."
)
@click.option("--all", "everything", is_flag=True, help="List all schedules. Ignores --limit.")
@click.option("--cursor", help="Continue a list that ended with this cursor.")
@url_option
@output_option(in_lines=True)
@settings_options("web_host", "web_port")
def command(
    settings: Settings,
    tenant: str,
    limit: int,
    everything: bool,
    url: str | None,
    output: Output,
    **filters: str | tuple[str, ...] | None,
) -> None:
    """List the pending schedules of the whole cluster. Needs a running worker; any of them answers."""
    parameters = {name: value for name, value in filters.items() if value is not None}
    if output.is_lines:
        ask(settings, url, lambda reader: _stream(reader, tenant, parameters, None if everything else limit))
        return
    page = ask(settings, url, lambda reader: reader.list(tenant, parameters, None if everything else limit))
    if output.is_table:
        _show(page)
    else:
        output.print(page)


async def _stream(reader: ScheduleReader, tenant: str, parameters: Parameters, limit: int | None) -> None:
    cursor = None
    lines = Output("jsonl").rows()
    async for page in reader.pages(tenant, parameters, limit):
        for schedule in page.schedules:
            lines.print(schedule)
        cursor = page.next_cursor
    if cursor is not None:
        note(f"there may be more: use --all, or --cursor {cursor}")


def _show(page: SchedulePage) -> None:
    now = SystemClock().now()
    table = Table(box=None, pad_edge=False)
    for name in ("id", "state", "next due (UTC)", "due", "trigger", "version", "target", "labels"):
        table.add_column(name, no_wrap=True)
    for schedule in page.schedules:
        table.add_row(
            shown(schedule.id),
            schedule.state,
            "" if schedule.due is None else format_instant(schedule.due),
            "" if schedule.due is None else relative(schedule.due - now),
            shown(trigger_text(schedule.trigger)),
            str(schedule.version),
            shown(schedule.target.topic),
            shown(",".join(f"{name}={value}" for name, value in schedule.labels.items())),
        )
    print_whole(table)
    shown_of = "" if page.total in (None, len(page.schedules)) else f"{len(page.schedules)} of "
    number = len(page.schedules) if page.total is None else page.total
    count = f"{shown_of}{number} schedule{'' if number == 1 else 's'}"
    more = "" if page.next_cursor is None else f"; there may be more: use --all, or --cursor {page.next_cursor}"
    note(count + more)
