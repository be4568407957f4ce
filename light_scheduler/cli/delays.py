"""`light-scheduler delays`: rules that forward every record of a topic to another topic, some time after its
timestamp."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console

from light_scheduler.clock import SystemClock
from light_scheduler.durations import format_duration
from light_scheduler.settings import Settings

from .durations import DurationText
from .examples import examples
from .options import settings_options, url_option
from .output import Output, output_option
from .schedule_output import relative, shown
from .suggesting import SuggestingGroup
from .verbosity import note, warn

if TYPE_CHECKING:
    from light_scheduler.delays import DelayLaneStatus, DelayView
    from light_scheduler.web.delay_client import DelayClient
    from light_scheduler.web.delay_documents import DelayList

T = TypeVar("T")


@click.group("delays", cls=SuggestingGroup)
def command() -> None:
    """List, add or remove delay rules. Needs a running worker; any of them answers."""


@command.command("list", epilog=examples("delays list", "delays list --json"))
@url_option
@output_option()
@settings_options("web_host", "web_port")
def list_rules(settings: Settings, url: str | None, output: Output) -> None:
    """List the delay rules with their state and progress."""
    listed = _ask(settings, url, lambda client: client.list())
    if output.is_table:
        _show(listed)
    else:
        output.print(listed, rows="delays")
    for unanswered in listed.unanswered:
        warn(f"{unanswered} did not answer, so its partitions are missing in these figures")


@command.command("add", epilog=examples("delays add reminder --source carts --delay 24h --target carts-left"))
@click.argument("name")
@click.option("--source", required=True, metavar="TOPIC", help="Topic to forward from.")
@click.option(
    "--delay",
    type=DurationText(),
    required=True,
    metavar="DURATION",
    help="How long after its timestamp to forward each record: 5s, 10m, 2h.",
)
@click.option("--target", required=True, metavar="TOPIC", help="Topic to forward to.")
@url_option
@output_option()
@settings_options("web_host", "web_port")
def add(settings: Settings, name: str, source: str, delay: str, target: str, url: str | None, output: Output) -> None:
    """Add the delay rule NAME, or replace it: the new rule continues where the old one stopped. All workers follow."""
    rule = _ask(settings, url, lambda client: client.put(name, source, delay, target))
    if output.is_table:
        click.echo(f"{rule.name}: {rule.source} -{format_duration(rule.delay)}-> {rule.target}")
    else:
        output.print(rule)


@command.command("remove", epilog=examples("delays remove reminder"))
@click.argument("name")
@url_option
@output_option()
@settings_options("web_host", "web_port")
def remove(settings: Settings, name: str, url: str | None, output: Output) -> None:
    """Remove the delay rule NAME. Waiting records stay in its source topic. If you add it again, it continues there."""
    _ask(settings, url, lambda client: client.remove(name))
    if output.is_table:
        click.echo(f"{name} removed")
    else:
        output.print({"removed": name})


def _ask(settings: Settings, url: str | None, question: Callable[[DelayClient], Awaitable[T]]) -> T:
    from light_scheduler.web.delay_client import DelayClient

    async def answer() -> T:
        async with DelayClient(url or settings.web_url, settings.web_token, settings.http_security) as client:
            return await question(client)

    return asyncio.run(answer())


def _show(listed: DelayList) -> None:
    """Print a paragraph for each rule: a table with all columns would be wider than a terminal."""
    now = SystemClock().now()
    console = Console(highlight=False)
    for rule in listed.delays:
        lanes = [lane for lane in listed.lanes if lane.rule == rule.name]
        lines = [f"{rule.name}: {rule.source} -{format_duration(rule.delay)}-> {rule.target}"]
        lines.append(f"  {_state(rule, lanes)}{_figures(lanes, now)}")
        reasons = dict.fromkeys(lane.reason for lane in lanes if lane.reason is not None)
        lines += [f"  {reason}" for reason in (*rule.warnings, *reasons)]
        for line in lines:
            console.print(shown(line), soft_wrap=True)
    if not listed.delays:
        note("No delay rules.")


def _state(rule: DelayView, lanes: list[DelayLaneStatus]) -> str:
    if rule.refused is not None:
        return f"refused: {rule.refused}"
    if not lanes:
        return "no partitions yet"
    return "waiting" if any(lane.waiting for lane in lanes) else "running"


def _figures(lanes: list[DelayLaneStatus], now: int) -> str:
    if not lanes:
        return ""
    next_due = min((lane.next_due for lane in lanes if lane.next_due is not None), default=None)
    details = [
        f"{len(lanes)} partition{'' if len(lanes) == 1 else 's'}",
        f"{sum(lane.forwarded for lane in lanes)} forwarded",
        f"lag {sum(lane.lag or 0 for lane in lanes)}",
        *([] if next_due is None else [f"next due {relative(next_due - now)}"]),
    ]
    return f": {', '.join(details)}"
