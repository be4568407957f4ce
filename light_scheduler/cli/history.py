"""`light-scheduler history`: what happened to one id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from light_scheduler.model import EventType
from light_scheduler.settings import Settings
from light_scheduler.wire import format_instant

from .event_output import events_printer
from .examples import examples
from .options import settings_options, tenant_option, url_option
from .output import Output, output_option
from .schedule_output import ask
from .suggestions import schedule_ids
from .verbosity import note

if TYPE_CHECKING:
    from light_scheduler.web.reader import ScheduleReader


@click.command(
    "history",
    epilog=examples("history order-1", "history order-1 --since 2030-01-01T00:00:00Z --event fired --json"),
)
@click.argument("id", shell_complete=schedule_ids)
@tenant_option
@click.option(
    "--since", metavar="INSTANT", help="Only events since this instant: UTC epoch ms, or RFC 3339. Default: a day ago."
)
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice([event.value for event in EventType]),
    metavar="EVENT",
    help="Only this event, such as fired or cancelled. Can be repeated.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after this number of events.")
@url_option
@output_option(of_rows=True)
@settings_options("web_host", "web_port")
def command(
    settings: Settings,
    id: str,
    tenant: str,
    since: str | None,
    events: tuple[str, ...],
    limit: int | None,
    url: str | None,
    output: Output,
) -> None:
    """Show what happened to the schedule ID, pending or not, the newest event first. Needs a running worker.

    The history has no index: a worker reads all of it, back to --since. JSON Lines are printed as they are found.
    """
    parameters: dict[str, str | tuple[str, ...]] = {"event": events}
    if since is not None:
        parameters["since"] = since

    async def follow(reader: ScheduleReader) -> None:
        count = 0
        searched_from = None
        with events_printer(output) as show:
            async for page in reader.history(tenant, id, parameters, limit):
                for event in page.events:
                    show(event)
                count += len(page.events)
                searched_from = page.searched_from
        if searched_from is not None:
            told = f"{count} event{'' if count == 1 else 's'} since {format_instant(searched_from)}"
            note(told)

    ask(settings, url, follow)
