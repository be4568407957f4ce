"""`light-scheduler schedule --from-file`: sends the commands of a file in chunks, and reads their answers."""

from __future__ import annotations

import asyncio
import secrets
import sys
from pathlib import Path

import click

from light_scheduler.client.channel import MakeCommand
from light_scheduler.clock import SystemClock
from light_scheduler.connection.diagnosis import fault_of
from light_scheduler.errors import ClientError
from light_scheduler.model import FAILURES
from light_scheduler.phases import PhaseBar
from light_scheduler.web.commands.channel import largest_record

from .answers import Sender, native_topic, quiet_kafka_client
from .command_rows import Format, Row, field_name, reason_in, rows_of
from .file_answers import From, LoadAnswers
from .file_position import STATE_SUFFIX, FileChangedError, FileInUseError, LoadedLines, Position
from .file_transactions import FileMark, LoadTransactions
from .row_chunks import RefusedRow, RefusedRows, checked, chunks
from .verbosity import error_console, note

REFUSED_SUFFIX = ".refused.jsonl"


def load(sender: Sender, path: Path, format: Format, refused_path: Path | None) -> None:
    """Send the commands of a file, starting where its last load ended. Exit with 1 if any was refused.

    Raises click.UsageError, BrokerError, and ClientError if an answer does not come.
    """
    quiet_kafka_client()
    refused_path = refused_path or path.with_name(path.name + REFUSED_SUFFIX)
    try:
        if refused_path.exists() and refused_path.samefile(path):
            raise click.UsageError(f"--refused names the file that is sent, {path}: name another one")
        with LoadedLines(path) as lines:
            lines.keep()
            asyncio.run(_send_all(sender, lines, format, refused_path))
            _report(sender, lines, refused_path)
    except FileInUseError:
        raise click.UsageError(f"{path} is being sent by another process: wait until that ends") from None
    except FileChangedError:
        raise click.UsageError(
            f"{path} has changed since its first rows were sent. Delete {path}{STATE_SUFFIX} to send all of it"
        ) from None
    except OSError as error:
        at_fault = error.filename or path
        option = "--refused" if str(at_fault) == str(refused_path) else "--from-file"
        raise click.BadParameter(f"{at_fault}: {error.strerror}", param_hint=option) from None
    except ValueError as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--from-file") from None
    if lines.state.refused:
        sys.exit(1)


def _report(sender: Sender, lines: LoadedLines, refused_path: Path) -> None:
    state = lines.state
    if not sender.output.is_table:
        sender.output.print({"lines": state.lines, "sent": state.sent, "refused": state.refused})
    else:
        refused = f"; {state.refused} refused: see {refused_path}" if state.refused else ""
        click.echo(f"{state.sent} sent{refused}")


async def _send_all(sender: Sender, lines: LoadedLines, format: Format, refused_path: Path) -> None:
    await _Load(sender, lines, format, refused_path).run()  # its clients must be created in a loop


class _Load:
    """Sends chunk after chunk. Steps, and the state after a crash in each of them:

    0. Take over. Abort the earlier process's transaction, and read the mark: rows up to it are in Kafka.
    1. Note in the state file that rows are in flight.       Not sent: the next process sends them.
    2. Send rows and mark as one transaction, and commit it. Sent or not: the mark tells.
    3. Read the answers.                                     Sent: the next process reads them again.
    4. Append the refused rows to their file.                Sent: the next process takes them back.
    5. Note in the state file that these rows are done.      Done.
    """

    def __init__(self, sender: Sender, lines: LoadedLines, format: Format, refused_path: Path) -> None:
        self._sender = sender
        self._lines = lines
        self._format = format
        self._refused = RefusedRows(refused_path)
        settings = sender.settings
        self._largest = largest_record(settings)
        self._kafka = LoadTransactions(settings, native_topic(settings), lines.name, SystemClock())
        self._answers: LoadAnswers | None = None

    async def run(self) -> None:
        """Send the rest of the file. Raises BrokerError, ClientError, FileChangedError."""
        if (fault := await fault_of(self._sender.settings.connection.aiokafka())) is not None:
            raise fault
        try:
            mark = await self._kafka.take_over()  # 0.
            if self._lines.state.in_flight:
                self._refused.take_back(self._lines.state.refused_file)
            with PhaseBar(console=error_console()) as bar:
                bar.begin("sending the file", self._lines.size)
                bar.done(self._lines.position)
                await self._go_on(mark)
                for chunk in chunks(rows_of(self._lines, self._format, self._sender.tenant)):
                    await self._send(chunk)
                    bar.done(self._lines.position)
            self._lines.store(self._lines.here(), sent=0, refused=0)
        finally:
            if self._answers is not None:
                await self._answers.close()
            await self._kafka.close()

    async def _go_on(self, mark: FileMark | None) -> None:
        """Finish the chunk that an earlier process has sent without completing its steps."""
        state = self._lines.state
        if mark is None:
            if state.in_flight:
                raise ClientError(in_doubt(state.lines))
            # Write the first mark, or replace one that has expired: a restart after a crash must find a mark.
            await self._kafka.send([], FileMark(self._lines.here(), None))
        if state.lines:
            note(f"continues after line {state.lines}: {state.sent} sent, {state.refused} refused before")
        if mark is None or mark.sent.lines <= state.lines:
            return
        self._lines.end = mark.sent.lines
        rows = list(rows_of(self._lines, self._format, self._sender.tenant))
        if not self._lines.is_at(mark.sent):
            raise FileChangedError
        self._lines.end = None
        note(f"{len(rows)} rows, up to line {mark.sent.lines}, are in Kafka already: they are not sent again")
        right, refused = checked(rows, self._largest)
        if mark.answers is not None and self._sender.waits:
            await self._open_answers(mark.answers)
            refused += await self._answered(right)
        self._settle(mark.sent, rows, refused)

    async def _send(self, chunk: list[Row]) -> None:
        here = self._lines.here()
        right, refused = checked(chunk, self._largest)
        answers: LoadAnswers | None = None
        if self._sender.waits:
            answers = self._answers or await self._open_answers()
        self._lines.begin(self._refused.now())  # 1.
        commands = [make(None if answers is None else answers.reply_to(row.line)) for row, make in right]
        await self._kafka.send(commands, FileMark(here, None if answers is None else await answers.position()))  # 2.
        if answers is not None:
            refused += await self._answered(right)  # 3.
        self._settle(here, chunk, refused)

    def _settle(self, here: Position, rows: list[Row], refused: list[RefusedRow]) -> None:
        self._refused.append(refused)  # 4.
        sent = len(rows) - len(refused)
        self._lines.store(here, sent=sent, refused=len(refused))  # 5.

    async def _open_answers(self, begin: From | None = None) -> LoadAnswers:
        topic, options = self._sender.settings.topics.results, self._sender.settings.connection.aiokafka()
        if begin is None:
            begin = From(secrets.randbelow(await self._kafka.partitions_of(topic)), None)
        self._answers = await LoadAnswers.open(options, topic, begin, self._lines.name)
        return self._answers

    async def _answered(self, right: list[tuple[Row, MakeCommand]]) -> list[RefusedRow]:
        """Wait for the answers about rows. Return the rows that the scheduler refused."""
        assert self._answers is not None, "opened before the rows were sent"
        results = await self._answers.wait([row.line for row, _ in right], self._sender.timeout_s)
        if (late := next((row for row, _ in right if row.line not in results), None)) is not None:
            raise ClientError(
                f"no answer about line {late.line} within {self._sender.timeout_s:g} s. Start a worker, then run this "
                "again: it waits for the answers, and sends no row twice. With --no-wait, it does not wait for answers"
            )
        answers = ((row, results[row.line]) for row, _ in right)
        return [
            RefusedRow(
                line=row.line, field=field_name(result.field, self._format),
                reason=reason_in(result.reason or result.outcome, self._format), row=row.text,
            )
            for row, result in answers
            if result.outcome in FAILURES
        ]  # fmt: skip


def in_doubt(line: int) -> str:
    """Return the error for rows of which it is no longer known whether they were sent."""
    return (
        f"rows after line {line} may have been sent or not: Kafka has no position of this load "
        "(offsets.retention.minutes passed, or it is another cluster). Check whether the commands topic has them. To "
        'send them, set "in_flight" to false in the state file'
    )
