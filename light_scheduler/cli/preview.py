"""`light-scheduler preview`: shows when a schedule would fire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from light_scheduler.client import ScheduleRequest
from light_scheduler.client.commands import schedule_command
from light_scheduler.clock import SystemClock
from light_scheduler.durations import distance
from light_scheduler.engine import preview
from light_scheduler.engine.cron.zones import load_zone
from light_scheduler.model import Cron, ScheduleCommand
from light_scheduler.wire import UnsentRecord, format_instant
from light_scheduler.wire.native import NATIVE

from .answers import invalid_commands_as_wrong_use
from .context import context_option
from .examples import examples
from .header_options import header_options
from .instants import Instant
from .options import tenant_option
from .output import Output, output_option
from .schedule_request import DELIVERY, TIME_AND_TARGET, key_option, request_of

_ASSUMED = "preview"
"""Id and target topic of a schedule that has none."""


@click.command(
    "preview",
    epilog=examples(
        'preview --cron "0 9 * * 1-5" --timezone Europe/Prague --count 3',
        "preview --every 1h --from 2030-01-01T00:00:00Z --json",
    ),
)
@click.option(
    "--id",
    metavar="ID",
    help="Id of the schedule. The instants of --jitter depend on it, and on --tenant. Default: the key, or preview.",
)
@key_option
@header_options(*TIME_AND_TARGET, *DELIVERY)
@tenant_option
@click.option(
    "--from",
    "accepted",
    type=Instant(lower_bound=True),
    metavar="INSTANT",
    help="When the schedule would be accepted. Default: now.",
)
@click.option(
    "--count", type=click.IntRange(1, 100_000), default=10, show_default=True, help="Number of firings to show."
)
@output_option()
@context_option
def command(accepted: int | None, count: int, tenant: str, output: Output, **given: Any) -> None:
    """Show when a schedule would fire, for the same options as `schedule`. Needs no broker and no worker.

    A paused schedule is shown as if it was resumed. Options for payload and headers of the message do not exist here.
    For --mode fixed-delay, every firing counts as completed at once. With --json, print {"next": [UTC epoch ms, ...]}.
    """
    if accepted is None:
        accepted = SystemClock().now()
    with invalid_commands_as_wrong_use():
        request = ScheduleRequest(**{"topic": _ASSUMED, **request_of(given)})  # type: ignore[typeddict-item]
        sent = schedule_command(tenant, request, generated_id=_ASSUMED)
        asked = NATIVE.decode(UnsentRecord(sent.key, sent.value, sent.headers, accepted))
        assert isinstance(asked, ScheduleCommand)
        firings = preview(asked, count)
    if output.is_table:
        _show(firings, accepted, asked.timing.timezone if isinstance(asked.timing, Cron) else "UTC")
    else:
        output.print({"next": firings}, rows="next")


def _show(firings: list[int], accepted: int, zone: str) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("due (UTC)", no_wrap=True)
    if zone != "UTC":
        table.add_column(f"due ({zone})", no_wrap=True)
    table.add_column("after", no_wrap=True)
    for number, due in enumerate(firings, 1):
        local = [] if zone == "UTC" else [_wall_clock(due, zone)]
        table.add_row(str(number), format_instant(due), *local, _after(due - accepted))
    Console().print(table)


def _after(ms: int) -> str:
    return f"-{distance(-ms)}" if ms < 0 else distance(ms)


def _wall_clock(ms: int, zone: str) -> str:
    # From the tzdata package like the engine, not from the machine.
    offset = timezone(timedelta(seconds=load_zone(zone).offset_at(ms // 1_000)))
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return moment.astimezone(offset).strftime("%a %Y-%m-%d %H:%M:%S %z")
