"""Rejects a command: writes history, a dead letter and, if the sender asked for one, an answer."""

from __future__ import annotations

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import EventType, Outcome, Result
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.build import ANY
from light_scheduler.wire.dialect import Envelope
from light_scheduler.wire.lane_marks import Origin
from light_scheduler.wire.record import sent_at

from .answers import Answers
from .history import shortened
from .transaction import Transaction

LONGEST_REPEATED = 10_000
"""Maximum characters of a sender's text that an error repeats. No legal id is longer."""


def reject(
    transaction: Transaction, answers: Answers, record: CommandRecord, origin: Origin | None, error: InvalidCommand
) -> None:
    """Reject an invalid command, and answer it. `origin` is that of a command that was forwarded here."""
    sent = sent_at(record)
    envelope, error = reject_silently(transaction, record, error)
    if origin is not None and (envelope.id or "").endswith(ANY):
        return  # the answer of a bulk command is its total
    if envelope.reply_to is not None and transaction.context.limits.may_answer_to(envelope.reply_to.topic):
        result = Result(
            envelope.command,
            envelope.tenant,
            envelope.id,
            Outcome.REJECTED,
            reason=error.reason,
            field=error.field,
            partition=sent.partition,
            offset=sent.offset,
        )
        answers.add(envelope.reply_to, envelope.key if record.key is None else record.key, result)


def reject_silently(
    transaction: Transaction, record: CommandRecord, error: InvalidCommand
) -> tuple[Envelope, InvalidCommand]:
    """Reject a command without an answer. Return its readable fields, and the error with shortened texts."""
    envelope = transaction.context.dialect.salvage(record)
    if envelope.id is not None and len(envelope.id) > LONGEST_REPEATED:
        envelope = msgspec.structs.replace(envelope, id=None)
    error = InvalidCommand(shortened(error.field, LONGEST_REPEATED), shortened(error.reason, LONGEST_REPEATED))
    transaction.outcomes[Outcome.REJECTED] += 1
    transaction.history.record_command(EventType.REJECTED, envelope.tenant, envelope.id, str(error))
    transaction.dead_letters.add_command(record, envelope, error)
    return envelope, error
