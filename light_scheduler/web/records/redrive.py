"""Sending dead letters again: a command to its commands topic, a firing to its target."""

from __future__ import annotations

import logging
from http import HTTPStatus

from aiohttp import web

from light_scheduler.engine import Limits
from light_scheduler.engine.tenants import refusal_of
from light_scheduler.errors import FormatError
from light_scheduler.kafka.atomic_writer import NewRecord
from light_scheduler.kafka.log_reader import Span
from light_scheduler.model import HistoryEvent, ScheduleCommand
from light_scheduler.model.tenant_rules import TenantState
from light_scheduler.web.access.guard import IDENTITY, refuse_hidden, refuse_reserved
from light_scheduler.web.access.requesters import naming, requester_of
from light_scheduler.web.commands.responses import failures_as_problems
from light_scheduler.web.forms.problems import RETRY_AFTER_S, ProblemError, ProblemType
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.looking_back import opened
from light_scheduler.web.worker import Worker
from light_scheduler.wire import (
    CommandRecord,
    UnsentRecord,
    change_record,
    decode_history,
    encode_history,
    history_key,
)
from light_scheduler.wire.events import CHANGES_PARTITION
from light_scheduler.wire.json_commands import is_json_record
from light_scheduler.wire.redrive import (
    deciding_key,
    redriven_command,
    redriven_event,
    redriven_firing,
    refused_command_headers,
)

from .command_dialects import CommandDialects
from .dead_letter_documents import FoundLetter, RedriveDocument

MOST_SEARCHED = 500
"""Records of each partition of the history to search for the event of a dead letter. Both have the same timestamp."""

log = logging.getLogger(__name__)


class Redrive:
    """Sends a letter again with every call. Earlier calls are not remembered."""

    def __init__(self, worker: Worker, turns: Turns) -> None:
        """`turns` are for the transactions; a worker runs one at a time."""
        self._worker = worker
        self._turns = turns
        settings = worker.settings
        self._dialects = CommandDialects(settings)
        self._limits = Limits.of(settings)

    async def close(self) -> None:
        """Release the resources that requests have opened."""
        await self._dialects.close()

    async def sent(self, request: web.Request, found: FoundLetter) -> RedriveDocument:
        """Send a dead letter again and return its new place. Raises ProblemError."""
        if (refusal := found.refusal(self._dialects, self._limits)) is not None:
            raise _impossible(refusal)
        send = self._command if found.kind == "command" else self._firing
        async with self._turns.turn():
            with failures_as_problems():
                document = await send(request, found)
        who = request[IDENTITY].name
        log.info(
            "dead letter %s of tenant %s was redriven by %s from %s", found.name, document.tenant, who, request.remote
        )
        return document

    async def _command(self, request: web.Request, found: FoundLetter) -> RedriveDocument:
        letter, worker = found.letter, self._worker
        headers = refused_command_headers(letter)
        record = UnsentRecord(letter.key, letter.value, headers, letter.at)
        await self._refuse_foreign(request, found, record)
        if is_json_record(record) or self._dialects[found.source_topic].name == "json":
            # The signature covers only the value. For a command in headers, it would fit any other command, too.
            headers = [*headers, *naming(request, worker.access)(letter.value or b"")]
        reason = redriven_command(letter, found.source_topic, found.name)
        event = change_record(letter.tenant, reason, requester_of(request), worker.clock.now())
        ((place, offset), _) = await worker.kafka.write_together(
            [
                NewRecord(
                    found.source_topic,
                    letter.key,
                    letter.value,
                    headers,
                    partition=letter.source_partition,
                    is_exact=True,
                ),
                NewRecord(worker.settings.topics.history, *event, [], partition=CHANGES_PARTITION),
            ]
        )
        return found.redriven_to(place, offset)

    async def _refuse_foreign(self, request: web.Request, found: FoundLetter, record: UnsentRecord) -> None:
        """Refuse letters that a token for some tenants could not send as commands. Raises ProblemError,
        InvalidCommand."""
        if request[IDENTITY].tenants is None:
            return
        trouble = await self._dialects.trouble_reading(found.source_topic, record)
        if trouble is not None:
            detail = f"Dead letter {found.name} cannot be read: {trouble}."
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail, retry_after_s=RETRY_AFTER_S)
        command = self._dialects[found.source_topic].decode(record)
        refuse_hidden(request, command.tenant)
        if isinstance(command, ScheduleCommand):
            refuse_reserved(request, command.target.topic, self._worker.settings.reserved_topics)

    async def _firing(self, request: web.Request, found: FoundLetter) -> RedriveDocument:
        letter, worker = found.letter, self._worker
        target = letter.target_topic or ""
        refuse_reserved(request, target, worker.settings.reserved_topics)
        self._refuse_against_rules(found, target)
        # Load the schema if possible. Without it, the message is delivered without what the schema would add.
        await self._dialects.trouble_reading(found.source_topic, UnsentRecord(letter.key, letter.value))
        last_event, now = await self._last_event(found), worker.clock.now()
        dialect = self._dialects[found.source_topic]
        try:
            value, headers = redriven_firing(letter, found.source_topic, dialect, found.name, last_event, now)
        except ValueError as error:
            raise _impossible(f"Dead letter {found.name}: {error}") from None
        event = redriven_event(letter, found.name, found.record.partition, last_event, requester_of(request), now)
        ((place, offset), _) = await worker.kafka.write_together(
            [
                NewRecord(
                    target, letter.key, value, headers, deciding_key(letter), letter.target_partition, is_exact=True
                ),
                NewRecord(
                    worker.settings.topics.history,
                    history_key(letter.tenant, letter.id),
                    encode_history(event),
                    [],
                    partition=found.record.partition,
                ),
            ]
        )
        return found.redriven_to(place, offset)

    def _refuse_against_rules(self, found: FoundLetter, target: str) -> None:
        """Refuse a firing that a lane could not deliver under the rules of its tenant. Raises ProblemError."""
        tenants = self._worker.tenants
        if not tenants.is_loaded:
            detail = "This worker has not read the rules of tenants from Kafka yet. Try again later."
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail, retry_after_s=RETRY_AFTER_S)
        tenant = tenants.book.get(found.letter.tenant)
        if tenant is None:
            return
        if tenant.is_stopped:
            is_deleted = tenant.state is TenantState.DELETED
            what = "was deleted" if is_deleted else "is paused: resume it first"
            raise _impossible(f"Dead letter {found.name} is of tenant {tenant.name}, which {what}.")
        if (reason := refusal_of(tenant, target)) is not None:
            raise _impossible(f"Dead letter {found.name}: {reason}.")

    async def _last_event(self, found: FoundLetter) -> HistoryEvent | None:
        """Return the history event of a firing that became a dead letter, if it still exists."""
        letter, at = found.letter, found.record.timestamp
        key = history_key(letter.tenant, letter.id)
        last_event = None
        async with opened(self._worker.kafka.logs, self._worker.settings.topics.history) as history:
            extents = await history.extents(max(0, at))
            spans = {
                number: Span(span.start, min(span.end, span.start + MOST_SEARCHED)) for number, span in extents.items()
            }
            async for records in history.read(spans):
                for record in records:
                    event = _read(record) if record.key == key else None
                    if event is not None and (event.due, event.at) == (letter.due, letter.at):
                        last_event = event
        return last_event


def _read(record: CommandRecord) -> HistoryEvent | None:
    try:
        return decode_history(record.value)
    except FormatError:
        return None  # written by another program


def _impossible(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.CONFLICT, detail, type=ProblemType.NOT_REDRIVABLE)
