"""A cluster of workers: real HTTP servers and real tables, over memory, without Kafka."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from light_scheduler.access import AccessBook, Role, Token
from light_scheduler.access.oidc import Oidc
from light_scheduler.access.store import TokenStore
from light_scheduler.cli import main
from light_scheduler.client import Receipt
from light_scheduler.client.channel import MakeCommand
from light_scheduler.client.commands import CommandToSend
from light_scheduler.clock import SettableClock
from light_scheduler.delays import DelayLaneStatus, DelayView, RuleFromConfigurationError
from light_scheduler.doctor.check import Check
from light_scheduler.engine import Limits, decide, result_of
from light_scheduler.engine.progress import standing
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka import compacted
from light_scheduler.kafka.atomic_writer import NewRecord
from light_scheduler.kafka.compacted import Change
from light_scheduler.kafka.log_reader import Span
from light_scheduler.lanes.rate_exchange import RateExchange
from light_scheduler.lanes.status import LaneStatus, TargetStatus
from light_scheduler.lanes.tenant_firings import TenantFirings
from light_scheduler.lanes.topic_totals import TopicTotals
from light_scheduler.model import (
    BulkTotal,
    Command,
    ControlCommand,
    DelayRule,
    Entry,
    Headers,
    Once,
    Outcome,
    Progress,
    ReplyTo,
    Requester,
    RescheduleCommand,
    Result,
    Schedule,
    Target,
)
from light_scheduler.model.delay import check_rule
from light_scheduler.model.place import Place
from light_scheduler.processes import Process
from light_scheduler.settings import Settings, load_settings
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.tables.status import StandbyStatus
from light_scheduler.tenants import TenantStore
from light_scheduler.web import (
    KafkaTopics,
    Worker,
    bounded,
    cluster_state,
    count_limits,
    delays,
    dry_run,
    install,
    looking_back,
    node,
    own,
    preview,
    request_limits,
    scatter,
    slices,
    why,
)
from light_scheduler.web.command_channel import Followed
from light_scheduler.web.etf1 import history as etf1_history
from light_scheduler.web.looking_back import Waiting
from light_scheduler.wire import (
    CommandRecord,
    UnsentRecord,
    dialect_named,
    encode_result,
    partition_for,
    result_headers,
)
from light_scheduler.wire.build import TargetMissing
from light_scheduler.wire.state import encode_entry, identity_of

NOW = 1_800_000_000_000
TOPIC = "light-scheduler-commands"
HISTORY = "light-scheduler-history"
IDEMPOTENCY = "light-scheduler-idempotency"
TESTER = Requester("test", "")

LIMITS = Limits(1_000, 512)

Client = TestClient[web.Request, web.Application]


def make_entry(
    id: str,
    *,
    due: int = NOW,
    partition: int = 0,
    offset: int = 0,
    progress: dict[str, Any] | None = None,
    **fields: Any,
) -> Entry:
    """Return a pending schedule; `fields` are those of its definition, `target` may be a topic's name."""
    target = fields.pop("target", "out")
    trigger = fields.pop("trigger", Once(due))
    definition: dict[str, Any] = {
        "tenant": "default",
        "version": 1,
        "payload": b"hello",
        "headers": [],
        "accepted_at": NOW,
        **fields,
    }
    schedule = Schedule(
        id=id,
        trigger=trigger,
        target=Target(target) if isinstance(target, str) else target,
        source_partition=partition,
        source_offset=offset,
        **definition,
    )
    begun = standing(schedule, Progress(due=due, arrival=offset, **(progress or {})))
    assert begun is not None
    return begun


def put(table: ScheduleTable, entry: Entry) -> None:
    """Store a schedule."""
    overlay = Overlay(table)
    overlay.put(identity_of(entry), entry, encode_entry(entry))
    overlay.apply(changelog_offset=table.checkpoint.changelog_offset + 1, complete_at=NOW)


def forget(table: ScheduleTable, entry: Entry) -> None:
    """Remove a schedule."""
    overlay = Overlay(table)
    overlay.remove(identity_of(entry))
    overlay.apply(changelog_offset=table.checkpoint.changelog_offset + 1, complete_at=NOW)


class MemoryLanes:
    """The lanes of one worker."""

    def __init__(self, partitions: list[int]) -> None:
        self.all = {(TOPIC, partition): ScheduleTable(MemoryStore()) for partition in partitions}
        self.states = dict.fromkeys(self.all, "running")
        self.figures: dict[str, Any] = {}
        self.copies: list[StandbyStatus] = []
        self.unavailable: list[TargetStatus] = []
        self.late: set[tuple[str, int]] = set()
        self.firings = TenantFirings()
        self.totals = {TOPIC: TopicTotals()}

    def tables(self) -> dict[tuple[str, int], ScheduleTable]:
        return {lane: table for lane, table in self.all.items() if self.states[lane] == "running"}

    async def catch_up(self) -> set[tuple[str, int]]:
        return self.late

    def targets(self) -> list[TargetStatus]:
        return self.unavailable

    def tenant_firings(self) -> TenantFirings:
        return self.firings

    def topic_totals(self) -> dict[str, TopicTotals]:
        return self.totals

    def standbys(self) -> list[StandbyStatus]:
        return self.copies

    def status(self) -> list[LaneStatus]:
        return [
            LaneStatus(
                topic=topic, partition=partition, state=self.states[topic, partition], pending=table.pending,
                **self.figures,
            )
            for (topic, partition), table in self.all.items()
        ]  # fmt: skip


class MemoryDelays:
    """The delay rules of a cluster, as one worker sees them; `fixed` is in the configuration."""

    def __init__(self) -> None:
        self.rules = {"fixed": DelayRule("fixed", "a", 5_000, "b")}
        self.changers: list[Requester] = []
        self.figures: list[DelayLaneStatus] = []

    def views(self) -> list[DelayView]:
        return [
            DelayView(
                name=rule.name, source=rule.source, delay=rule.delay, target=rule.target,
                origin="configuration" if rule.name == "fixed" else "topic",
            )
            for _, rule in sorted(self.rules.items())
        ]  # fmt: skip

    def lanes(self) -> list[DelayLaneStatus]:
        return self.figures

    async def put(self, rule: DelayRule, *, by: Requester) -> bool:
        self._check(rule.name)
        check_rule(rule, self.rules.values(), Settings().reserved_topics)
        is_new = rule.name not in self.rules
        self.rules[rule.name] = rule
        self.changers.append(by)
        return is_new

    async def remove(self, name: str, *, by: Requester) -> bool:
        self._check(name)
        self.changers.append(by)
        return self.rules.pop(name, None) is not None

    def _check(self, name: str) -> None:
        if name == "fixed":
            raise RuleFromConfigurationError(name)


class MemoryLog:
    """The idempotency topic of a cluster."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self.records: list[UnsentRecord] = []
        self.failure: Exception | None = None
        self._added: set[asyncio.Event] = set()

    def add(self, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """Append a record and return its offset."""
        offset = len(self.records)
        self.records.append(UnsentRecord(key, value, headers, self._clock.now(), 0, offset))
        for event in self._added:
            event.set()
        return offset

    def follow(self) -> MemoryFollowed:
        event = asyncio.Event()
        self._added.add(event)
        return MemoryFollowed(self, event)


class MemoryFollowed:
    """One reader of a `MemoryLog`."""

    def __init__(self, log: MemoryLog, added: asyncio.Event) -> None:
        self._log = log
        self._added = added

    async def __aiter__(self) -> AsyncIterator[CommandRecord]:
        place = 0
        while True:
            if self._log.failure is not None:
                raise self._log.failure
            while place < len(self._log.records):
                yield self._log.records[place]
                place += 1
            self._added.clear()
            await self._added.wait()

    async def close(self) -> None:
        pass


class MemoryTopics:
    """The topics of a cluster that are looked back through; each has two partitions."""

    def __init__(self) -> None:
        self.records: dict[str, list[list[UnsentRecord]]] = {}
        self.failure: Exception | None = None
        self.write_failure: Exception | None = None
        self.partitions: dict[str, int] = {}
        self.counted = 0
        """How often it was asked how many partitions the topics have."""
        self.answer: asyncio.Event | None = None
        """Says when that is answered."""
        self.read = 0
        """How many records have been read."""

    def add(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        *,
        partition: int = 0,
        at: int = NOW,
    ) -> int:
        """Append a record of an instant and return its offset."""
        records = self.records.setdefault(topic, [[], []])[partition]
        records.append(UnsentRecord(key, value, headers or [], at, partition, len(records)))
        return len(records) - 1

    async def write(self, records: Sequence[NewRecord]) -> list[tuple[Place, int]]:
        if (failure := self.failure or self.write_failure) is not None:
            raise failure
        written: list[tuple[Place, int]] = []
        for each in records:
            partition = each.partition_of(2)
            offset = self.add(each.topic, each.key, each.value, each.headers, partition=partition)
            written.append(((each.topic, partition), offset))
        return written

    @asynccontextmanager
    async def open(self, topic: str) -> AsyncIterator[MemoryTopics.Log]:
        if self.failure is not None:
            raise self.failure
        yield self.Log(self, self.records.get(topic, [[], []]))

    async def close(self) -> None:
        """Nothing is kept."""

    async def count_partitions(self) -> Mapping[str, int]:
        self.counted += 1
        if self.answer is not None:
            await self.answer.wait()
        if self.failure is not None:
            raise self.failure
        return self.partitions

    class Log:
        """One of the topics."""

        def __init__(self, topics: MemoryTopics, partitions: list[list[UnsentRecord]]) -> None:
            self._topics = topics
            self._partitions = partitions

        async def extents(self, since: int) -> dict[int, Span]:
            return {
                number: Span(
                    next((each.offset for each in records if each.timestamp >= since), len(records)), len(records)
                )
                for number, records in enumerate(self._partitions)
            }

        async def read(
            self, spans: Mapping[int, Span], waiting: Waiting = nullcontext
        ) -> AsyncIterator[Sequence[CommandRecord]]:
            with waiting():
                await asyncio.sleep(0)
            for partition, span in spans.items():
                records = self._partitions[partition][span.start : span.end]
                self._topics.read += len(records)
                yield records


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
        self.seen: list[Command] = []
        self.records: list[CommandRecord] = []
        self.changed = 0
        """What bulk commands are answered."""
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


class KnownPeers:
    """One worker's view of who has what; all workers of a cluster share `distribution`."""

    def __init__(self, distribution: dict[str, dict[str, list[int]]]) -> None:
        self.distribution = distribution
        self.own_url = ""

    def owners(self) -> dict[str, dict[str, list[int]]]:
        return self.distribution


class MemoryTopic:
    """The tenants topic of a cluster; `topics` have its history."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics
        self.entries: dict[bytes, bytes] = {}
        self.is_loaded = True
        self.failure: Exception | None = None
        self.changed: list[Callable[[], None]] = []

    async def follow(self, changed: Callable[[], None]) -> None:
        self.changed.append(changed)
        changed()

    async def write_all(self, records: Iterable[compacted.Record]) -> None:
        if self.failure is not None:
            raise self.failure
        self.entries |= {key: value for key, value in records if value is not None}  # stores remove nothing
        for changed in self.changed:
            changed()

    async def change(self, make: Callable[[], Change]) -> None:
        entries, told = make()
        await self.write_all(entries)
        if told is not None:
            self._topics.add(HISTORY, *told)


class MemoryAccess:
    """One worker's view of who may ask."""

    def __init__(self, topic: MemoryTopic, clock: SettableClock) -> None:
        self.topic = topic
        self.store = TokenStore(topic, clock)
        self.uses: list[str] = []
        self.oidc: Oidc | None = None

    @property
    def is_loaded(self) -> bool:
        return self.topic.is_loaded

    @property
    def book(self) -> AccessBook:
        return self.store.book

    def used(self, token: Token) -> None:
        self.uses.append(token.id)


class MemoryWorker:
    """A worker's lanes behind its real HTTP server."""

    tenants: TenantStore
    exchange: RateExchange

    def __init__(
        self,
        lanes: MemoryLanes,
        delays: MemoryDelays,
        commands: MemoryCommands,
        peers: KnownPeers,
        access: MemoryAccess,
        client: Client,
    ) -> None:
        self.lanes = lanes
        self.commands = commands
        self.delays = delays
        self.peers = peers
        self.access = access
        self.client = client
        self.url = peers.own_url

    async def json(self, path: str, status: int = 200, **parameters: str) -> Any:
        """GET a path and return its JSON; the status has to be as expected."""
        async with self.client.get(path, params=parameters or None) as response:
            assert response.status == status, await response.text()
            return await response.json(content_type=None)

    async def ask(self, method: str, path: str, status: int, body: Any = None, **options: Any) -> Any:
        """Send a request and return its JSON; the status has to be as expected."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        async with self.client.request(method, path, data=data, **options) as response:
            assert response.status == status, await response.text()
            return await response.json(content_type=None)

    async def stop(self) -> None:
        """Stop the server: nothing listens on its port."""
        await self.client.close()


class MemoryCluster:
    """Workers that know of each other."""

    def __init__(self) -> None:
        self.workers: list[MemoryWorker] = []
        self.distribution: dict[str, dict[str, list[int]]] = {}
        self.clock = SettableClock(NOW)
        self.settings = Settings()
        self.idempotency = MemoryLog(self.clock)
        self.topics = MemoryTopics()
        self.tenants = MemoryTopic(self.topics)
        self.examined: list[Mapping[str, Any]] = []
        """What the checks of `doctor` were given."""

    def examine(self, info: Mapping[str, Any]) -> list[Check]:
        """Find what a doctor might."""
        self.examined.append(info)
        return [
            Check("disk", "ok", "9 GiB free"),
            Check("clock", "warn", "nothing synchronises it", "run an NTP client"),
        ]

    async def token(self, role: str, *tenants: str, lifetime: int | None = None, name: str = "") -> str:
        """Create a token, for all tenants if none is named, and return its text."""
        (access, *_) = [worker.access for worker in self.workers]
        await access.store.make_peer_secret()
        bound = tenants or None
        _, text = await access.store.create(name or role, Role(role), bound, by=TESTER, lifetime=lifetime)
        return text.reveal()

    async def start(self, *shares: list[int], as_node: bool = False) -> list[MemoryWorker]:
        """Start a worker for each list of partitions; they may be the processes of one node."""
        urls: Any = []
        for number, partitions in enumerate(shares):
            process = Process(number, urls, restarts=number) if as_node else None
            lanes, delays, peers = MemoryLanes(partitions), MemoryDelays(), KnownPeers(self.distribution)
            commands = MemoryCommands(self.tables, self.idempotency)
            commands.dialects = {source.name: source.dialect for source in self.settings.inputs}
            application = web.Application()
            access = MemoryAccess(self.tenants, self.clock)
            await access.store.follow(lambda: None)
            tenants = TenantStore(self.tenants, self.clock)
            await tenants.follow(lambda: None)
            worker = Worker(
                lanes,
                delays,
                peers,
                KafkaTopics(
                    commands, self.topics.open, self.topics.write, self.topics.close, self.topics.count_partitions
                ),
                self.settings,
                self.clock,
                access,
                tenants,
                self.examine,
                process,
                (exchange := RateExchange(peers, [TOPIC])),
            )
            install(application, worker)
            client: Client = TestClient(TestServer(application))
            await client.start_server()
            peers.own_url = str(client.make_url("")).rstrip("/")
            urls.append(peers.own_url)
            self.distribution[peers.own_url] = {TOPIC: partitions, "unrelated": [0]}
            self.workers.append(MemoryWorker(lanes, delays, commands, peers, access, client))
            self.workers[-1].tenants = tenants
            self.workers[-1].exchange = exchange
        return self.workers

    def tables(self) -> dict[tuple[str, int], ScheduleTable]:
        """Return the tables of all lanes."""
        return {lane: table for worker in self.workers for lane, table in worker.lanes.all.items()}

    def put(self, id: str, *, partition: int = 0, **fields: Any) -> None:
        """Store a schedule in whichever worker has the partition."""
        for worker in self.workers:
            if (TOPIC, partition) in worker.lanes.all:
                put(worker.lanes.all[TOPIC, partition], make_entry(id, partition=partition, **fields))


BUDGETS = {
    bounded: ("REQUEST_TIME_S",),
    cluster_state: ("CONNECT_TIMEOUT_S", "TOTAL_TIMEOUT_S"),
    count_limits: ("REQUEST_TIME_S", "PATIENCE_S"),
    delays: ("CONNECT_TIMEOUT_S", "TOTAL_TIMEOUT_S"),
    dry_run: ("MOST_TIME_S",),
    etf1_history: ("MOST_TIME_S",),
    looking_back: ("PAGE_TIME_S",),
    node: ("ANSWER_S",),
    own: ("REQUEST_TIME_S", "SEARCH_TIME_S"),
    preview: ("MOST_TIME_S",),
    request_limits: ("PATIENCE_S",),
    scatter: ("CONNECT_TIMEOUT_S", "TOTAL_TIMEOUT_S", "GRACE_S"),
    why: ("MOST_TIME_S",),
}
"""By module, the time that an answer may take of the processor or of who waits for it."""


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers whole on a machine that is busy, or collects garbage; tests of a limit set it themselves."""
    for module, names in BUDGETS.items():
        for name in names:
            monkeypatch.setattr(module, name, 60.0)


@pytest.fixture
async def cluster() -> AsyncIterator[MemoryCluster]:
    """Return a cluster without workers; they are stopped at the end."""
    cluster = MemoryCluster()
    yield cluster
    for worker in cluster.workers:
        await worker.stop()


@pytest.fixture
def commands_topics() -> str:
    """Return the setting of `workers`; modules about a dialect have their own."""
    return TOPIC


@pytest.fixture
async def workers(cluster: MemoryCluster, commands_topics: str) -> list[MemoryWorker]:
    """Return two workers: the first has the partitions 0 and 2, the second 1 and 3."""
    if commands_topics != TOPIC:
        cluster.settings = with_topics(commands_topics)
    return await cluster.start([0, 2], [1, 3])


def with_topics(commands_topics: str) -> Settings:
    """Return settings with these commands topics."""
    return load_settings({"commands_topics": commands_topics}, environment={})


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[slices.LoopTime]:
    """Have every slice end after one row, and return a list that grows with each rest."""
    monkeypatch.setattr(slices, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    rest = slices.LoopTime.rest
    rests: list[slices.LoopTime] = []

    async def noted(self: slices.LoopTime) -> None:
        rests.append(self)
        await rest(self)

    monkeypatch.setattr(slices.LoopTime, "rest", noted)
    return rests


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the command line beside the loop: (arguments) -> (exit code, stdout, stderr)."""

    def call() -> int:
        with pytest.raises(SystemExit) as exit:
            main()
        return exit.value.code  # type: ignore[return-value]

    async def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["light-scheduler", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        code = await asyncio.to_thread(call)
        return code, *capsys.readouterr()

    return run
