"""`light-scheduler delays`: rules that forward every record of a topic to another one, a time after its timestamp."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console
from rich.table import Table

from light_scheduler.clock import SystemClock
from light_scheduler.durations import format_duration
from light_scheduler.settings import Settings

from .options import json_option, settings_options
from .schedule_output import relative, shown, url_option, worker_url

if TYPE_CHECKING:
    from light_scheduler.delays import DelayLaneStatus, DelayView
    from light_scheduler.web.delay_client import DelayClient
    from light_scheduler.web.documents import DelayList

T = TypeVar("T")


@click.group("delays")
def command() -> None:
    """List, add or remove delay rules. Any worker answers; it has to be running."""


@command.command("list")
@url_option
@json_option
@settings_options("web_host", "web_port")
def list_rules(settings: Settings, url: str | None, as_json: bool) -> None:
    """List the delay rules, and what the workers make of them."""
    listed = _ask(settings, url, lambda client: client.list())
    if as_json:
        _print_json(listed)
    else:
        _show(listed)


@command.command("add")
@click.argument("name")
@click.option("--source", required=True, metavar="TOPIC", help="The topic that is read.")
@click.option("--delay", required=True, metavar="DURATION", help="Time after each record's timestamp: 5s, 10m, 2h.")
@click.option("--target", required=True, metavar="TOPIC", help="The topic that each record goes to.")
@url_option
@json_option
@settings_options("web_host", "web_port")
def add(settings: Settings, name: str, source: str, delay: str, target: str, url: str | None, as_json: bool) -> None:
    """Add the rule NAME, or replace it. It takes effect on all workers at once, and goes on where it stopped."""
    rule = _ask(settings, url, lambda client: client.put(name, source, delay, target))
    if as_json:
        _print_json(rule)
    else:
        click.echo(f"{rule.name}: {rule.source} -{format_duration(rule.delay)}-> {rule.target}")


@command.command("remove")
@click.argument("name")
@url_option
@json_option
@settings_options("web_host", "web_port")
def remove(settings: Settings, name: str, url: str | None, as_json: bool) -> None:
    """Remove the rule NAME. Records that wait stay in its source; added again it goes on where it stopped."""
    _ask(settings, url, lambda client: client.remove(name))
    click.echo(json.dumps({"removed": name}) if as_json else f"{name} removed")


def _ask(settings: Settings, url: str | None, question: Callable[[DelayClient], Awaitable[T]]) -> T:
    from light_scheduler.web.delay_client import DelayClient

    async def answer() -> T:
        async with DelayClient(url or worker_url(settings)) as client:
            return await question(client)

    return asyncio.run(answer())


def _print_json(document: object) -> None:
    import msgspec

    click.echo(msgspec.json.encode(document))


def _show(listed: DelayList) -> None:
    now = SystemClock().now()
    table = Table(box=None, pad_edge=False)
    for name in ("name", "source", "delay", "target", "partitions", "forwarded", "lag", "next due", "state"):
        table.add_column(name, overflow="fold")
    for rule in listed.delays:
        lanes = [lane for lane in listed.lanes if lane.rule == rule.name]
        next_due = min((lane.next_due for lane in lanes if lane.next_due is not None), default=None)
        table.add_row(
            shown(rule.name),
            shown(rule.source),
            format_duration(rule.delay),
            shown(rule.target),
            str(len(lanes)),
            str(sum(lane.forwarded for lane in lanes)),
            str(sum(lane.lag or 0 for lane in lanes)),
            "" if next_due is None else relative(next_due - now),
            shown(_state(rule, lanes)),
        )
    Console().print(table)
    for url in listed.unanswered:
        click.echo(f"{url} did not answer: its partitions are not counted", err=True)


def _state(rule: DelayView, lanes: list[DelayLaneStatus]) -> str:
    if rule.refused is not None:
        return f"refused: {rule.refused}"
    reasons = dict.fromkeys(lane.reason for lane in lanes if lane.reason is not None)
    told = [*rule.warnings, *filter(None, reasons)]
    if not lanes:
        return "; ".join(["no partitions yet", *told])
    return "; ".join(told) or "running"
