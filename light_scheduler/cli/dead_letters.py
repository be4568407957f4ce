"""`light-scheduler dead-letters`: rejected commands and undeliverable firings, and sending them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from light_scheduler.clock import SystemClock
from light_scheduler.model import DeadLetterCause
from light_scheduler.settings import Settings
from light_scheduler.wire.instants import format_instant

from .completed_values import tenants
from .examples import examples
from .instants import InstantText
from .options import settings_options, url_option
from .output import Output, output_option
from .schedule_output import ask_of, content_text, instant_text, payload_text, print_whole, shown
from .suggesting import SuggestingGroup
from .verbosity import note

if TYPE_CHECKING:
    from light_scheduler.web.dead_letter_client import DeadLetterReader
    from light_scheduler.web.records.dead_letter_documents import DeadLetterDetail, DeadLetterPage, RedriveDocument

_CAUSES = [cause.value for cause in DeadLetterCause]


@click.group("dead-letters", cls=SuggestingGroup)
def command() -> None:
    """List, show or redrive dead letters: rejected commands and undeliverable firings. Needs a running worker."""


@command.command(
    "list", epilog=examples("dead-letters list", "dead-letters list --tenant shop --cause refused --limit 20 --json")
)
@click.option(
    "--tenant", shell_complete=tenants, help="Only those of this tenant. Default: all that the token may see."
)
@click.option("--id", metavar="ID", help="Only those of this schedule.")
@click.option("--cause", type=click.Choice(_CAUSES), help="Only those with this cause.")
@click.option(
    "--since", type=InstantText(), metavar="INSTANT", help="Only those since this instant: UTC epoch ms, or RFC 3339."
)
@click.option("--limit", type=click.IntRange(min=1), default=300, show_default=True, help="Maximum number.")
@url_option
@output_option()
@settings_options("web_host", "web_port")
def list_letters(settings: Settings, url: str | None, output: Output, limit: int, **filters: str | None) -> None:
    """List dead letters, newest first."""
    parameters = {name: value for name, value in filters.items() if value is not None}
    page = ask_of(_reader(), settings, url, lambda reader: reader.list_dead_letters(parameters, limit))
    if output.is_table:
        _show_list(page)
    else:
        output.print(page, rows="dead_letters")
        _note_if_more(page)


@command.command("show", epilog=examples("dead-letters show 2-15", "dead-letters show 2-15 --json"))
@click.argument("letter")
@url_option
@output_option()
@settings_options("web_host", "web_port")
def show(settings: Settings, url: str | None, output: Output, letter: str) -> None:
    """Show the dead letter LETTER (PARTITION-OFFSET), with its bytes."""
    found = ask_of(_reader(), settings, url, lambda reader: reader.dead_letter(letter))
    if output.is_table:
        _show(found)
    else:
        output.print(found)


@command.command("redrive", epilog=examples("dead-letters redrive 2-15", "dead-letters redrive 2-15 0-3 --json"))
@click.argument("letters", nargs=-1, required=True, metavar="LETTER...")
@url_option
@output_option(of_rows=True)
@settings_options("web_host", "web_port")
def redrive(settings: Settings, url: str | None, output: Output, letters: tuple[str, ...]) -> None:
    """Send dead letters again: a command to its commands topic, a firing to its target.

    Each call sends them once more. The first one that cannot be sent ends it, with exit code 1.
    """

    async def send(reader: DeadLetterReader) -> None:
        if output.is_table:
            for letter in letters:
                _report(await reader.redrive(letter))
            return
        with output.rows() as rows:
            for letter in letters:
                rows.print(await reader.redrive(letter))

    ask_of(_reader(), settings, url, send)


def _reader() -> type[DeadLetterReader]:
    from light_scheduler.web.dead_letter_client import DeadLetterReader

    return DeadLetterReader


def _report(sent: RedriveDocument) -> None:
    text = f"{sent.letter}: {sent.kind} sent to {sent.topic}, partition {sent.partition}, offset {sent.offset}"
    click.echo(shown(text).plain)


def _show_list(page: DeadLetterPage) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("letter", "at (UTC)", "cause", "schedule", "target", "reason"):
        table.add_column(name, no_wrap=True)
    for letter in page.dead_letters:
        reason = f"{letter.field}: {letter.reason}" if letter.field else letter.reason
        if letter.lacks is not None:
            reason += f" (left out: {letter.lacks})"
        table.add_row(
            letter.letter,
            format_instant(letter.at),
            letter.cause,
            shown(f"{letter.tenant}/{letter.id or '?'}"),
            shown(letter.target_topic or ""),
            shown(reason),
        )
    print_whole(table)
    count = len(page.dead_letters)
    note(f"{count} dead letter{'' if count == 1 else 's'}")
    _note_if_more(page)


def _note_if_more(page: DeadLetterPage) -> None:
    if page.next_cursor is not None:
        note("there may be more: raise --limit")


def _show(letter: DeadLetterDetail) -> None:
    now, source = SystemClock().now(), letter.source
    lines = {
        "letter": letter.letter,
        "kind": letter.kind,
        "cause": letter.cause,
        "reason": letter.reason,
        "field": letter.field,
        "tenant": letter.tenant,
        "id": letter.id,
        "since": instant_text(letter.at, now),
        "due": None if letter.due is None else instant_text(letter.due, now),
        "firing id": letter.firing_id,
        "target": letter.target_topic,
        "command": f"{source.topic}[{source.partition}] offset {source.offset}",
        "left out": None if letter.lacks is None else f"{letter.lacks}: it cannot be sent again",
        "key": content_text(letter.key),
        "headers": "\n".join(f"{header.name}: {content_text(header.value)}" for header in letter.headers),
        "payload": payload_text(letter.payload, letter.decoded),
    }
    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        if value is not None:
            table.add_row(name, shown(value))
    Console().print(table)
