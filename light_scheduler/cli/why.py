"""`light-scheduler why`: explains why a schedule fired, fires or does not fire."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from light_scheduler.settings import Settings
from light_scheduler.wire import format_instant

from .completed_values import schedule_ids
from .examples import examples
from .instants import InstantText
from .options import settings_options, tenant_option, url_option
from .output import Output, output_option
from .schedule_output import ask, shown
from .verbosity import note

if TYPE_CHECKING:
    from light_scheduler.web.why_document import WhyDocument


@click.command("why", epilog=examples("why order-1", "why order-1 --tenant shop --since 2030-01-01T00:00:00Z --json"))
@click.argument("id", shell_complete=schedule_ids)
@tenant_option
@click.option(
    "--since",
    type=InstantText(),
    metavar="INSTANT",
    help="Read the history back to this instant: UTC epoch ms, or RFC 3339. Default: a day ago.",
)
@url_option
@output_option()
@settings_options("web_host", "web_port")
def command(settings: Settings, id: str, tenant: str, since: str | None, url: str | None, output: Output) -> None:
    """Explain what happened to the schedule ID, and when it fires next or why it does not. Needs a running worker.

    Each line is an event, oldest first. The last line is the current state.

    Exit code 1: ID is unknown, its partition does not answer, or no worker can be reached.
    """
    parameters = {} if since is None else {"since": since}
    document = ask(settings, url, lambda reader: reader.why(tenant, id, parameters))
    if output.is_table:
        _show(document)
    else:
        output.print(document)
    if document.state in ("unknown", "unreachable"):
        sys.exit(1)


def _show(document: WhyDocument) -> None:
    for each in document.events:
        click.echo(shown(f"{format_instant(each.at)} {each.text}").plain)
    click.echo(shown(document.summary).plain)
    if not document.complete:
        since = format_instant(document.searched_from)
        note(f"the history before {since} was not read: `light-scheduler history` reads on")
