"""`light-scheduler history`: events of one id, or changes of tenants, tokens and delay rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from light_scheduler.model import SCHEDULE_EVENTS, EventType, HistoryEvent
from light_scheduler.settings import Settings
from light_scheduler.wire import format_instant

from .completed_values import schedule_ids
from .event_output import events_printer
from .examples import examples
from .instants import InstantText
from .options import settings_options, tenant_option, url_option
from .output import Output, output_option
from .schedule_output import ask
from .verbosity import note

if TYPE_CHECKING:
    from light_scheduler.web.cluster.worker_http import Parameters
    from light_scheduler.web.schedule_client import ScheduleReader


@click.command(
    "history",
    epilog=examples(
        "history order-1",
        "history order-1 --since 2030-01-01T00:00:00Z --event fired --json",
        "history --changes --tenant shop --since 2030-01-01T00:00:00Z",
    ),
)
@click.argument("id", required=False, shell_complete=schedule_ids)
@click.option(
    "--changes",
    is_flag=True,
    help="Show changes of tenants, tokens and delay rules, and redriven commands: all of them, or those of --tenant. "
    "Needs the role admin.",
)
@tenant_option
@click.option(
    "--since",
    type=InstantText(),
    metavar="INSTANT",
    help="Only events since this instant: UTC epoch ms, or RFC 3339. Default: a day ago.",
)
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice([event.value for event in EventType if event in SCHEDULE_EVENTS]),
    metavar="EVENT",
    help="Only this event, such as fired or cancelled. Can be repeated.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after this number of events.")
@url_option
@output_option(of_rows=True)
@settings_options("web_host", "web_port")
def command(
    settings: Settings,
    id: str | None,
    changes: bool,
    tenant: str,
    since: str | None,
    events: tuple[str, ...],
    limit: int | None,
    url: str | None,
    output: Output,
) -> None:
    """Show what happened to the schedule ID, pending or not, or changes of tenants, tokens and delay rules.

    The newest event comes first. Needs a running worker.

    The history has no index: a worker reads all of it, back to --since. JSON Lines are printed as they are found.
    """
    parameters: dict[str, str | tuple[str, ...]] = {}
    if since is not None:
        parameters["since"] = since
    if changes:
        if id is not None or events:
            raise click.UsageError("--changes takes no ID and no --event: leave them out")
        if _is_given("tenant"):
            parameters["tenant"] = tenant
        _show(settings, url, output, "change", lambda reader: _changes(reader, parameters, limit))
        return
    if id is None:
        raise click.UsageError("give the ID of a schedule, or --changes")
    named, parameters["event"] = id, events
    _show(settings, url, output, "event", lambda reader: _events(reader, tenant, named, parameters, limit))


Found = AsyncIterator[tuple[Sequence[HistoryEvent], int]]
"""Events of a page, newest first, and the instant (UTC epoch ms) back to which the history was searched."""


async def _events(reader: ScheduleReader, tenant: str, id: str, parameters: Parameters, limit: int | None) -> Found:
    async for page in reader.history(tenant, id, parameters, limit):
        yield page.events, page.searched_from


async def _changes(reader: ScheduleReader, parameters: Parameters, limit: int | None) -> Found:
    async for page in reader.changes(parameters, limit):
        yield page.changes, page.searched_from


def _show(
    settings: Settings, url: str | None, output: Output, what: str, search: Callable[[ScheduleReader], Found]
) -> None:
    """Print the results of a search as they arrive, and their number at the end."""

    async def follow(reader: ScheduleReader) -> None:
        count = 0
        searched_from = None
        with events_printer(output) as show:
            async for found, reached in search(reader):
                for event in found:
                    show(event)
                count += len(found)
                searched_from = reached
        if searched_from is not None:
            note(f"{count} {what}{'' if count == 1 else 's'} since {format_instant(searched_from)}")

    ask(settings, url, follow)


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
