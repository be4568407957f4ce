"""Commands that are carried out on tables in memory, as lanes do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from light_scheduler.client import Receipt
from light_scheduler.client.channel import MakeCommand
from light_scheduler.client.commands import CommandToSend
from light_scheduler.clock import SettableClock
from light_scheduler.engine import Limits, decide, result_of
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import BulkTotal, Command, ControlCommand, Outcome, ReplyTo, RescheduleCommand, Result
from light_scheduler.tables import ScheduleTable
from light_scheduler.web.commands.channel import MOST_WAITING, Followed, Sender
from light_scheduler.web.commands.errors import TooManyWaitingError
from light_scheduler.web.limits.shares import HOLDER, Shares
from light_scheduler.wire import (
    CommandRecord,
    UnsentRecord,
    dialect_named,
    encode_result,
    partition_for,
    result_headers,
)
from light_scheduler.wire.build import TargetMissing

from .schedules import NOW, TOPIC, forget, put
from .topics import MemoryLog

IDEMPOTENCY = "light-scheduler-idempotency"

LIMITS = Limits(1_000, 512)


class MemoryCommands:
    """Carries commands out on the tables of a cluster's lanes, as workers do; `failure` is raised in their place."""

    def __init__(
        self, lanes: Callable[[], Mapping[tuple[str, int], ScheduleTable]], idempotency: MemoryLog | None = None
    ) -> None:
        self._lanes = lanes
        self.idempotency = idempotency or MemoryLog(SettableClock(NOW))
        self.is_held = False
        """Whether commands that are sent are not carried out."""
        self.failure: Exception | None = None
        self.under_way = Shares(MOST_WAITING)
        self.seen: list[Command] = []
        self.records: list[CommandRecord] = []
        self.changed = 0
        """What bulk commands are answered."""
        self.answers: dict[str, Callable[[Command], Result] | Exception] = {}
        """What topics answer to bulk commands, or how these fail there, in place of `changed`."""
        self.dialects: dict[str, str] = {}
        """Those of topics that are not native."""

    async def close(self) -> None:
        """There is nothing to disconnect."""

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        if self.failure is not None:
            raise self.failure
        return self._carry_out(make(ReplyTo("results", b"c-1")), ReplyTo("results", b"c-1"))

    def _carry_out(self, sent: CommandToSend, reply_to: ReplyTo | None) -> Result:
        lanes = self._lanes()
        topic = sent.topic or TOPIC
        partition = partition_for(sent.key, len(lanes)) if sent.partition is None else sent.partition
        record = UnsentRecord(sent.key, sent.value, sent.headers, NOW, partition, 7)
        self.records.append(record)
        try:
            command: Command = dialect_named(self.dialects.get(topic, "native")).decode(record)
        except TargetMissing as error:  # a lane knows the tenant's own
            command = error.command
        assert command.reply_to == reply_to or reply_to is None
        self.seen.append(command)
        if (answer := self.answers.get(topic)) is not None:
            if isinstance(answer, Exception):
                raise answer
            return answer(command)
        table = lanes[topic, partition]
        if isinstance(command, ControlCommand | RescheduleCommand) and command.selection is not None:
            return result_of(BulkTotal(command, (), changed=self.changed))
        current = table.get(command.tenant, command.id)
        try:
            decision = decide(command, current, NOW, LIMITS)
        except InvalidCommand as error:
            return Result(
                command.name, command.tenant, command.id, Outcome.REJECTED, reason=error.reason, field=error.field
            )
        if decision.event is not None and decision.entry is not None:
            put(table, decision.entry)
        elif decision.event is not None and current is not None:
            forget(table, current)
        entry = decision.subject
        return Result(
            command.name,
            command.tenant,
            command.id,
            decision.outcome,
            None if entry is None else entry.schedule.version,
            None if decision.entry is None else decision.entry.progress.next_due,
            decision.reason,
            None,
            partition,
            7,
        )

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        with self.place() as sender:
            return await sender.send(make, timeout)

    @contextmanager
    def place(self) -> Iterator[Sender]:
        holder = HOLDER.get()
        if not self.under_way.has_room(holder):
            raise TooManyWaitingError
        with self.under_way.holding(holder):
            yield _PlacedSender(self)

    async def write(self, make: MakeCommand, timeout: float) -> Receipt:
        """Send a command that has its place."""
        if self.failure is not None:
            raise self.failure
        sent = make(None)
        if sent.topic == IDEMPOTENCY:
            return Receipt(sent.tenant, sent.id, 0, self.idempotency.add(sent.key, sent.value, sent.headers))
        if self.is_held:
            return Receipt(sent.tenant, sent.id, 0, 7)
        result = self._carry_out(sent, None)
        command = self.seen[-1]
        if command.reply_to is not None and command.reply_to.topic == IDEMPOTENCY:
            headers = result_headers(command.reply_to.correlation_id)
            self.idempotency.add(sent.key, encode_result(result), headers)
        return Receipt(sent.tenant, sent.id, result.partition or 0, 7)

    async def follow(self, topic: str, timeout: float) -> Followed:
        assert topic == IDEMPOTENCY
        return self.idempotency.follow()


class _PlacedSender:
    def __init__(self, commands: MemoryCommands) -> None:
        self._commands = commands

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        return await self._commands.ask(make, timeout)

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        return await self._commands.write(make, timeout)
