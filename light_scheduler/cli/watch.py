"""`light-scheduler watch`: follow the history of schedules."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import click

from light_scheduler.client import SchedulerClient
from light_scheduler.model import EventType
from light_scheduler.settings import Settings
from light_scheduler.wire import encode_history

from .answers import CONNECT_TIMEOUT_S, quiet_kafka_client
from .event_output import event_line
from .examples import examples
from .options import json_option, settings_options
from .suggestions import tenants


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
@json_option
def command(
    settings: Settings,
    as_json: bool,
    tenant: str | None,
    id_prefix: str,
    events: tuple[str, ...],
    from_beginning: bool,
    limit: int | None,
) -> None:
    """Show the events of schedules as they happen, until Ctrl-C. With --json, print one document per line."""
    quiet_kafka_client()

    async def follow() -> None:
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
                    click.echo(encode_history(event) if as_json else event_line(event))
                    shown += 1
                    if shown == limit:
                        return

    try:
        asyncio.run(follow())
    except KeyboardInterrupt:
        return
