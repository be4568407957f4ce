"""The answers that the commands of a cycle ask for."""

from __future__ import annotations

import msgspec

from light_scheduler.engine import Decision, event_of, result_of
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.context.lane_context import Refusals, origin_key
from light_scheduler.lanes.failures.held_firings import Holding
from light_scheduler.model import BulkTotal, Command, Outcome, ReplyTo, Result
from light_scheduler.wire import CommandRecord, encode_result, history_key, partition_for, result_headers
from light_scheduler.wire.record import sent_at

from .transaction import Transaction


class Answers:
    """Collects answers, and adds them to a transaction once their topics have been resolved."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._context = transaction.context
        self._replies: list[tuple[ReplyTo, bytes | None, Result]] = []
        self._aims: dict[int, str] = {}  # index into the replies -> target topic of the schedule

    @property
    def results(self) -> list[Result]:
        """The answers of this cycle."""
        return [result for _, _, result in self._replies]

    @property
    def topics(self) -> set[str]:
        """The topics that answers go to or are about. Resolve them before `send`."""
        return {reply_to.topic for reply_to, _, _ in self._replies}.union(self._aims.values())

    def add(self, reply_to: ReplyTo, key: bytes | None, result: Result, aim: str | None = None) -> None:
        """Note an answer to a command with this key. `aim` is the target topic of the schedule."""
        if aim is not None:
            self._aims[len(self._replies)] = aim
        self._replies.append((reply_to, key, result))

    def add_decision(self, record: CommandRecord, command: Command, decision: Decision) -> None:
        """Answer a command if it asks for an answer.

        The answer has the key of the record, or else the key that the record's value names.
        """
        if command.reply_to is None:
            return
        sent = sent_at(record)
        subject, entry = decision.subject, decision.entry
        result = Result(
            command.name,
            command.tenant,
            command.id,
            decision.outcome,
            version=subject.schedule.version if subject is not None else None,
            next_due=entry.progress.next_due if entry is not None else None,
            reason=decision.reason,
            partition=sent.partition,
            offset=sent.offset,
        )
        aims = entry is not None and decision.outcome in (Outcome.SCHEDULED, Outcome.UPDATED)
        aim = entry.schedule.target.topic if entry is not None and aims else None
        self.add(command.reply_to, command.key if record.key is None else record.key, result, aim)

    def add_bulk(self, total: BulkTotal) -> None:
        """Record and answer a bulk command that all partitions have applied."""
        command, event, result = total.command, event_of(total, self._transaction.now), result_of(total)
        with self._transaction.history.asked_for_by(total.requester):
            self._transaction.history.add(history_key(event.tenant, event.id), event)
        self._transaction.outcomes[result.outcome] += 1
        if command.reply_to is not None:
            self.add(command.reply_to, command.key, result)

    def add_unrecorded(self, total: BulkTotal) -> None:
        """Answer a bulk command whose end cannot be recorded in the history."""
        command = total.command
        if command.reply_to is not None:
            self.add(command.reply_to, command.key, result_of(total))

    def send(self, refusals: Refusals, holding: Holding | None = None) -> int:
        """Add all answers to the transaction. Return how many cannot be delivered."""
        return sum(not self._send(number, *reply, refusals, holding) for number, reply in enumerate(self._replies))

    def _send(
        self,
        number: int,
        reply_to: ReplyTo,
        key: bytes | None,
        result: Result,
        refusals: Refusals,
        holding: Holding | None,
    ) -> bool:
        targets = self._context.targets
        if (aim := self._aims.get(number)) is not None and (warning := targets[aim].refusal):
            reason = "; ".join(filter(None, (f"{warning}: nothing can be delivered there", result.reason)))
            result = msgspec.structs.replace(result, reason=reason)
        topic = targets[reply_to.topic]
        is_refused = topic.refusal is not None or (topic.is_compacted and key is None)
        if is_refused or (refusals and origin_key(result) in refusals):
            return False
        place = reply_to.topic, self._partition(reply_to, key, topic.partitions)
        if holding is not None and holding.loses(place):
            return False  # no answer waits for its topic: the command holds, and the history has it
        headers = result_headers(reply_to.correlation_id)
        try:
            self._transaction.batches.add(place, key, encode_result(result), headers, origin=result)
        except RecordTooLargeError:  # because of its key or correlation id, which the sender chose
            return False
        return True

    def _partition(self, reply_to: ReplyTo, key: bytes | None, partitions: int) -> int:
        """Return the partition that an answer goes to. A requested partition that does not exist is ignored."""
        if reply_to.partition is not None and reply_to.partition < partitions:
            return reply_to.partition
        return self._context.partition % partitions if key is None else partition_for(key, partitions)
