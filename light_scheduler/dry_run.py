"""A dry run: shows the effect of commands that are accepted at one instant, if nothing else happens until another.

It runs the scheduler in memory (`in_memory`) with commands in the JSON form. All target topics exist, with any
partition, and no consumer completes firings. Of tenants' rules, only those apply that allow or refuse a single command,
regardless of the tenant's other commands and pending schedules.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.model import DEFAULT_TENANT, FAILURES, DeadLetter, DeadLetterCause, Firing, Headers, Outcome
from light_scheduler.model.tenant_rules import NO_TENANTS, Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.settings import Settings
from light_scheduler.settings.values import CommandsTopic
from light_scheduler.wire import (
    UnsentRecord,
    correlation_id_of,
    decode_dead_letter,
    decode_result,
    json_command,
    parse_firing,
)
from light_scheduler.wire.json_values import UNREADABLE, check

DAY_MS = 86_400_000
"""Default duration of a dry run."""

ANY_PARTITION = 10_000
"""Stands for the unknown number of partitions of a target topic."""

_LINE = msgspec.json.Decoder(dict[str, msgspec.Raw])

_REPLY = frozenset(("reply_topic", "reply_partition", "correlation_id"))
"""The members that say which result a command asks for."""


class _Names(msgspec.Struct):
    key: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()


_NAMES = msgspec.json.Decoder(_Names)


class Answer(msgspec.Struct, frozen=True):
    """The scheduler's answer to the command in a line. `field` names the invalid field. Times are UTC epoch ms."""

    line: int
    command: str | None
    tenant: str | None
    id: str | None
    outcome: Outcome
    version: int | None = None
    next_due: int | None = None
    field: str | None = None
    reason: str | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the command would have no effect: it is invalid, conflicts, or its schedule is not pending."""
        return self.outcome in FAILURES


class Delivery(msgspec.Struct, frozen=True):
    """A message that would be delivered to a topic at `firing.fired_at`."""

    topic: str
    firing: Firing


class DryRun:
    """A dry run of commands. All are accepted at `start` (UTC epoch ms), in the order of the lines.

        run = DryRun(Path("commands.jsonl").read_bytes().splitlines(), start)
        for delivery in run.deliveries(start + 86_400_000): ...
        refused = [answer for answer in run.answers if answer.is_refused]

    `answers` and `undelivered` reflect the part of `deliveries` that was read.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        start: int,
        settings: Settings | None = None,
        *,
        tenant: str = DEFAULT_TENANT,
        tenants: TenantBook = NO_TENANTS,
        most_per_cycle: int = MOST,
    ) -> None:
        """Prepare a dry run with one command from each non-blank line. Invalid commands are answered like others.

        `tenant` is for lines without a tenant. Of the rules in `tenants`, targets, default targets, maximum payloads
        and deletions apply. Rates, `max_pending`, distributions and pauses do not.
        """
        settings = settings or Settings()
        source = CommandsTopic(settings.topics.commands, "json")
        settings = replace(settings, commands_topics=(source,), partitions=1, max_pending_per_partition=0)
        self._scheduler = MemoryScheduler(
            settings,
            start,
            target_partitions=ANY_PARTITION,
            most=most_per_cycle,
            tenants=_SingleCommandTenants(tenants),
        )
        self._results = settings.topics.results
        self._defaults = {"command": "schedule", "tenant": tenant}
        self._run = secrets.token_hex(16)
        self._read = 0
        self._unsent: dict[int, Answer] = {}
        self._lines = ((number, line) for number, line in enumerate(lines, 1) if line.strip())

    def deliveries(self, until: int) -> Iterator[Delivery]:
        """Yield the deliveries up to `until` (UTC epoch ms), in order. They are computed as they are read."""
        return chain.from_iterable(self.rounds(until))

    def rounds(self, until: int) -> Iterator[list[Delivery]]:
        """Yield the deliveries in lists, which may be empty: one for each line and each cycle.

        For callers with limited time.
        """
        for number, line in self._lines:
            self._send(number, line)
            yield []
        for _ in self._scheduler.rounds(until):
            read, self._read = self._read, len(self._scheduler.broker.records)
            records = self._scheduler.delivered_after(read)
            yield [Delivery(record.topic, parse_firing(record)) for record in records]

    @property
    def answers(self) -> list[Answer]:
        """The scheduler's answers, by line."""
        answers = dict(self._unsent)
        for record in self._scheduler.broker.records:
            if record.topic == self._results and (number := self._line_of(record.headers)) is not None:
                result = decode_result(record.value)
                answers[number] = Answer(
                    number,
                    result.command,
                    result.tenant,
                    result.id,
                    result.outcome,
                    result.version,
                    result.next_due,
                    result.field,
                    result.reason,
                )
        return [answers[number] for number in sorted(answers)]

    @property
    def undelivered(self) -> list[DeadLetter]:
        """The firings that would become dead letters."""
        topic = self._scheduler.names.dead_letters
        letters = [decode_dead_letter(record)[0] for record in self._scheduler.broker.records if record.topic == topic]
        return [letter for letter in letters if letter.cause is not DeadLetterCause.REJECTED]

    def _line_of(self, headers: Headers) -> int | None:
        """Return the number of the line that a record in the results topic answers.

        None for other records: schedules can deliver to that topic, or deliver commands with other correlation ids.
        """
        run, _, number = (correlation_id_of(headers) or b"").rpartition(b":")
        return int(number) if run == self._run.encode() else None

    def _send(self, number: int, line: bytes) -> None:
        try:
            command = json_command(line, {}, self._defaults)
            key = key_of(command)
        except InvalidCommand as error:
            self._unsent[number] = Answer(number, None, None, None, Outcome.REJECTED, reason=error.reason)
            return
        members = _LINE.decode(command)
        if not _REPLY.isdisjoint(members) and (refused := self._refused_reply(number, key, command)) is not None:
            self._unsent[number] = refused
            return
        reply = {"reply_topic": self._results, "correlation_id": f"{self._run}:{number}"}
        answered = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in reply.items()}
        self._scheduler.send(key, msgspec.json.encode({**members, **answered}), [])

    def _refused_reply(self, number: int, key: bytes | None, command: bytes) -> Answer | None:
        """Return the answer to a command that is refused because of the result it asks for; otherwise None.

        The command that is sent asks for another one.
        """
        dialect, record = self._scheduler.dialect, UnsentRecord(key, command, (), self._scheduler.clock.now())
        try:
            self._scheduler.limits.check(dialect.decode(record))
        except InvalidCommand as error:
            field = dialect.field_name(record, error.field)
            if field in _REPLY:
                said = dialect.salvage(record)
                return Answer(
                    number, said.command, said.tenant, said.id, Outcome.REJECTED, field=field, reason=error.reason
                )
        return None


class _SingleCommandTenants(TenantBook):
    """The tenants of a book with only the rules that apply to single commands. Paused tenants are active.

    A tenant is reduced when it is looked up: a book may have tens of thousands, and a dry run names few.
    """

    def __init__(self, book: TenantBook) -> None:
        super().__init__()
        self.tenants = _Reduced(book.tenants)
        self.get = self.tenants.get
        self.stopped = self.deleted = book.deleted
        self.counted = frozenset()


class _Reduced(Mapping[str, Tenant]):
    def __init__(self, tenants: Mapping[str, Tenant]) -> None:
        self._tenants = tenants
        self._known: dict[str, Tenant] = {}

    def __getitem__(self, name: str) -> Tenant:
        tenant = self._known.get(name)
        if tenant is None:
            tenant = self._known[name] = _of_single_commands(self._tenants[name])
        return tenant

    def __iter__(self) -> Iterator[str]:
        return iter(self._tenants)

    def __len__(self) -> int:
        return len(self._tenants)


def _of_single_commands(tenant: Tenant) -> Tenant:
    """Return a tenant with only the rules that apply to single commands, active unless it was deleted."""
    return Tenant(
        name=tenant.name,
        rules=TenantRules(
            targets=tenant.rules.targets,
            default_target=tenant.rules.default_target,
            max_payload_bytes=tenant.rules.max_payload_bytes,
        ),
        state=TenantState.DELETED if tenant.state is TenantState.DELETED else TenantState.ACTIVE,
    )


def key_of(command: bytes) -> bytes | None:
    """Return the record's key as clients and HTTP choose it: the entity key, or the id if there is none.

    Raises InvalidCommand if a member cannot be read, since a lane would not answer such a command.
    """
    try:
        check(command)
    except UNREADABLE as error:
        raise InvalidCommand("line", f"is not JSON: {error}") from None
    names = _NAMES.decode(command)
    for raw in (names.key, names.id):
        if bytes(raw).startswith(b'"'):
            return msgspec.json.decode(raw, type=str).encode()
    return None
