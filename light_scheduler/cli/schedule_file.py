"""`light-scheduler schedule --from-file`: the commands of a file, in chunks, with answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from light_scheduler.client.channel import Channel, MakeCommand
from light_scheduler.client.receipt import Unanswered
from light_scheduler.errors import ClientError
from light_scheduler.model import Outcome
from light_scheduler.phases import PhaseBar
from light_scheduler.web.command_channel import largest_record

from .answers import CONNECT_TIMEOUT_S, Sender, native_topic, quiet_kafka_client
from .command_rows import Format, Row, field_name, rows_of
from .loading import STATE_SUFFIX, FileChangedError, LoadedLines
from .verbosity import error_console

CHUNK = 500
CHUNK_CHARACTERS = 8 << 20
"""Rows that are sent, and answered, before the next ones are read."""

REFUSED_SUFFIX = ".refused.jsonl"

_REFUSALS = (Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND)


class _Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was refused, in the file of those."""

    line: int
    field: str | None
    reason: str
    row: str


def load(sender: Sender, path: Path, format: Format, refused_path: Path | None) -> None:
    """Send the commands of a file, from where the last load of it ended; exit with 1 if any was refused.

    Raises click.UsageError, BrokerError, and ClientError if an answer does not come.
    """
    quiet_kafka_client()
    refused_path = refused_path or path.with_name(path.name + REFUSED_SUFFIX)
    try:
        with LoadedLines(path) as lines:
            lines.keep()
            asyncio.run(_Load(sender, lines, format, refused_path).run())
            _report(sender, lines, refused_path)
    except FileChangedError:
        raise click.UsageError(
            f"{path} has changed since its first rows were sent. Delete {path}{STATE_SUFFIX} to send all of it"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.BadParameter(f"{path}: {reason}", param_hint="--from-file") from None
    if lines.state.refused:
        sys.exit(1)


def _report(sender: Sender, lines: LoadedLines, refused_path: Path) -> None:
    state = lines.state
    if not sender.output.is_table:
        sender.output.print({"lines": state.lines, "sent": state.sent, "refused": state.refused})
    else:
        refused = f"; {state.refused} refused: see {refused_path}" if state.refused else ""
        click.echo(f"{state.sent} sent{refused}")


class _Load:
    def __init__(self, sender: Sender, lines: LoadedLines, format: Format, refused_path: Path) -> None:
        self._sender = sender
        self._lines = lines
        self._format = format
        self._refused_path = refused_path

    async def run(self) -> None:
        """Send chunk after chunk, and note each that was answered."""
        settings = self._sender.settings
        rows = rows_of(self._lines, self._format, self._sender.tenant)
        async with Channel(
            settings.connection.aiokafka(),
            commands_topic=native_topic(settings),
            results_topic=settings.topics.results,
            connect_timeout=CONNECT_TIMEOUT_S,
            max_request_bytes=largest_record(settings),
        ) as channel:
            with PhaseBar(console=error_console()) as bar:
                bar.begin("bytes sent", self._lines.size)
                bar.done(self._lines.position)
                while chunk := _chunk(rows):
                    mark = self._lines.mark()
                    right, refused = _checked(chunk, largest_record(settings))
                    refused += await self._answered(channel, right)
                    self._keep_refused(refused)
                    self._lines.store(mark, sent=len(chunk) - len(refused), refused=len(refused))
                    bar.done(self._lines.position)
                self._lines.store(self._lines.mark(), sent=0, refused=0)

    async def _answered(self, channel: Channel, right: list[tuple[Row, MakeCommand]]) -> list[_Refused]:
        """Send rows; return those that the scheduler refused."""
        makers = [make for _, make in right]
        if not self._sender.waits:
            await channel.send_many((make(None) for make in makers), self._sender.timeout_s)
            return []
        results: list[Any] = await channel.ask_many(makers, self._sender.timeout_s)
        if (late := next((each for each in results if isinstance(each, Unanswered)), None)) is not None:
            raise ClientError(
                f"no answer about {late.tenant}/{late.id} within {self._sender.timeout_s:g} s. Start a worker, then "
                "run this again: it goes on with these rows. With --no-wait, no answers are waited for"
            )
        return [
            _Refused(
                line=row.line, field=field_name(result.field, self._format), reason=result.reason or result.outcome,
                row=row.text,
            )
            for (row, _), result in zip(right, results, strict=True)
            if result.outcome in _REFUSALS
        ]  # fmt: skip

    def _keep_refused(self, refused: list[_Refused]) -> None:
        if refused:
            with self._refused_path.open("ab") as file:
                file.writelines(msgspec.json.encode(each) + b"\n" for each in refused)


def _chunk(rows: Iterator[Row]) -> list[Row]:
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.text)
        if len(chunk) == CHUNK or size >= CHUNK_CHARACTERS:
            break
    return chunk


def _checked(chunk: list[Row], largest: int) -> tuple[list[tuple[Row, MakeCommand]], list[_Refused]]:
    """Return the rows that can be sent, and those that cannot: one that the topic refuses would stop all others."""
    right: list[tuple[Row, MakeCommand]] = []
    refused: list[_Refused] = []
    for row in chunk:
        field, reason = row.field, row.reason
        if row.make is not None and len(row.make(None).value or b"") > largest:
            field, reason = "payload", f"is larger than {largest} bytes"
        if row.make is None or reason is not None:
            refused.append(_Refused(line=row.line, field=field, reason=reason or "", row=row.text))
        else:
            right.append((row, row.make))
    return right, refused
