"""`light-scheduler watch`: follows the history of schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress

import click

from light_scheduler.client import SchedulerClient
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.settings import Settings

from .answers import CONNECT_TIMEOUT_S, quiet_kafka_client
from .completed_values import tenants
from .event_output import events_printer
from .examples import examples
from .options import settings_options
from .output import Output, output_option


@click.command(
    "watch", epilog=examples("watch", "watch --from-beginning --event fired --id-prefix order- --limit 10 --json")
)
@click.option("--tenant", shell_complete=tenants, help="Only events of this tenant.")
@click.option("--id-prefix", default="", metavar="TEXT", help="Only schedules whose id begins with this text.")
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice([event.value for event in EventType]),
    metavar="EVENT",
    help="Only this event, such as fired or cancelled. Can be repeated.",
)
@click.option(
    "--from-beginning", is_flag=True, help="Begin with the oldest event in the history topic. Default: begin now."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after this number of events.")
@settings_options("app_id", "broker")
@output_option(of_rows=True)
def command(
    settings: Settings,
    output: Output,
    tenant: str | None,
    id_prefix: str,
    events: tuple[str, ...],
    from_beginning: bool,
    limit: int | None,
) -> None:
    """Show the events of schedules as they happen, until Ctrl-C."""
    quiet_kafka_client()

    async def follow(show: Callable[[HistoryEvent], None]) -> None:
        shown = 0
        async with SchedulerClient(
            settings.connection, app_id=settings.app_id, connect_timeout=CONNECT_TIMEOUT_S
        ) as client:
            history = client.watch(
                tenant=tenant,
                id_prefix=id_prefix,
                events={EventType(event) for event in events},
                from_beginning=from_beginning,
            )
            async with aclosing(history):
                async for event in history:
                    show(event)
                    shown += 1
                    if shown == limit:
                        return

    with events_printer(output) as show, suppress(KeyboardInterrupt):
        asyncio.run(follow(show))
