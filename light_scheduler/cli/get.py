"""`light-scheduler get`: show one schedule of the cluster."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
from msgspec import UNSET
from rich.console import Console
from rich.table import Table

from light_scheduler.clock import SystemClock
from light_scheduler.durations import format_duration
from light_scheduler.errors import ClientError
from light_scheduler.settings import Settings

from .completed_values import schedule_ids
from .examples import examples
from .options import settings_options, tenant_option, url_option
from .output import Output, output_option
from .schedule_output import (
    ask,
    bounds_text,
    content_text,
    instant_text,
    payload_text,
    relative,
    shown,
    trigger_text,
)

if TYPE_CHECKING:
    from light_scheduler.web.forms.documents import AcknowledgementView, AwaitedView, ScheduleDetail


@click.command("get", epilog=examples("get order-1", "get order-1 --json --url http://node-1:6066"))
@click.argument("id", shell_complete=schedule_ids)
@tenant_option
@url_option
@output_option()
@settings_options("web_host", "web_port")
def command(settings: Settings, id: str, tenant: str, url: str | None, output: Output) -> None:
    """Show the pending schedule ID, with its payload and headers. Needs a running worker; any of them answers."""
    schedule = ask(settings, url, lambda reader: reader.get(tenant, id))
    if schedule is None:
        why = shlex.join(["light-scheduler", "why", "--tenant", tenant, "--", id])
        gone = f"tenant {tenant} has no pending schedule {id!r}"
        raise ClientError(f"{gone}. The history says what happened to it: {why}")
    if output.is_table:
        _show(schedule)
    else:
        output.print(schedule)


def _show(schedule: ScheduleDetail) -> None:
    now = SystemClock().now()
    target, source = schedule.target, schedule.source
    key = target.key if target.key_base64 is UNSET else f"{target.key_base64} (base64)"
    lines = {
        "id": schedule.id,
        "tenant": schedule.tenant,
        "state": schedule.state,
        "version": str(schedule.version),
        "next due": "open" if schedule.due is None else instant_text(schedule.due, now),
        "trigger": trigger_text(schedule.trigger),
        "bounds": bounds_text(schedule.trigger) or "none",
        "misfire": f"{schedule.misfire}, grace {format_duration(schedule.misfire_grace)}",
        "next firing": f"{schedule.sequence}, attempt {schedule.attempt}",
        "completion": _completion(schedule.acknowledgement),
        "awaiting": "\n".join(_awaited(each, now) for each in schedule.awaiting) or "nothing",
        "target": target.topic if target.partition is None else f"{target.topic}[{target.partition}]",
        "key": "(null)" if key is None else key,
        "labels": ", ".join(f"{name}={value}" for name, value in schedule.labels.items()),
        "priority": str(schedule.priority),
        "ttl": "none" if schedule.ttl is None else format_duration(schedule.ttl),
        "accepted": instant_text(schedule.accepted_at, now),
        "command": f"{source.topic}[{source.partition}] offset {source.offset}",
        "headers": "\n".join(f"{header.name}: {content_text(header.value)}" for header in schedule.headers),
        "payload": payload_text(schedule.payload, schedule.decoded),
    }
    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        table.add_row(name, shown(value))
    Console().print(table)


def _completion(asked: AcknowledgementView | None) -> str:
    if asked is None:
        return "not asked for"
    attempts = f"{asked.max_attempts} attempt{'' if asked.max_attempts == 1 else 's'}"
    return f"within {format_duration(asked.timeout)}, {attempts}, overlap {asked.overlap}"


def _awaited(firing: AwaitedView, now: int) -> str:
    again = "" if firing.until is None else f", again {relative(firing.until - now)}"
    return f"{firing.firing_id} attempt {firing.attempt}{again}"
