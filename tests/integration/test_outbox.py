"""The outbox on real databases and a real Kafka: what is booked is in the commands topic exactly once, in order."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import MetaData, create_engine, event, func, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool
from support.application import Application
from support.cases import by_day
from support.clocks import HOUR, MINUTE
from support.postgres import running_postgres
from support.reading import Record, read_until
from support.waiting import eventually

from light_scheduler.cli import cli
from light_scheduler.clock import Clock, SystemClock
from light_scheduler.errors import BrokerError
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.outbox import BlockingOutboxRelay, DatabaseBehind, Outbox, OutboxInDoubt, OutboxRelay, RelayOptions
from light_scheduler.outbox.ledger import Ledger
from light_scheduler.outbox.shard import ShardRelay, Step
from light_scheduler.settings import Settings, load_settings
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

LOCK_TIMEOUT_S = 60
"""For SQLite: whoever has its lock may stand still."""

STEPS = (Step.CLAIMED, Step.SENT, Step.SETTLED, Step.FENCED, Step.RECOVERED)
"""All; first those after which another relay finds a batch half done."""

DYING = Path(__file__).parents[1] / "support" / "dying_relays.py"


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as server:
        yield server.address


@pytest.fixture
def settings(kafka: Kafka) -> Settings:
    """An application with topics and no worker."""
    app_id = f"outbox-{uuid.uuid4().hex[:8]}"
    settings = load_settings({"app_id": app_id, "broker": f"kafka://{kafka.bootstrap_servers}"}, environment={})
    create_topics(settings)
    return settings


class Shop:
    """An application with an outbox of its own: it books, and looks at what its relays have sent."""

    def __init__(self, settings: Settings, url: str) -> None:
        metadata = MetaData()
        self.name = f"outbox_{uuid.uuid4().hex[:8]}" if url.startswith("postgresql") else "light_scheduler_outbox"
        self.outbox = Outbox(metadata, name=self.name)
        patience = {"timeout": LOCK_TIMEOUT_S} if url.startswith("sqlite") else {}
        self.engine = create_engine(url, poolclass=NullPool, connect_args=patience)
        metadata.create_all(self.engine)
        self.url = url
        self.kafka = settings.connection.bootstrap_servers
        self.topic = f"{settings.app_id}-commands"
        self.options = RelayOptions(name=self.name, app_id=settings.app_id, poll=0.05, lease=1.0)
        self.booked: list[str] = []

    def book(self, count: int, *, ids: int = 1) -> None:
        """Book messages, each with the number of bookings before it; `ids` schedules take turns."""
        with Session(self.engine) as session, session.begin():
            for _ in range(count):
                number = len(self.booked)
                id = f"order-{number % ids}" if ids > 1 else f"order-{number}"
                self.booked.append(f"{id}:{number}")
                self.outbox.schedule(session, id, b"%d" % number, topic="anywhere", after="1h")

    @property
    def rows(self) -> int:
        with self.engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(self.outbox.tables.commands)) or 0

    async def sent(self) -> list[str]:
        """Return what is in the commands topic; to be called when all is sent. Fails if an order is not kept."""
        await self._send_the_last()
        last = set(self.booked[-3:])
        records = await read_until(self.kafka, [self.topic], lambda found: last <= set(map(_named, found)))
        for name in {_id(record) for record in records}:
            numbers = [int(record.value) for record in records if _id(record) == name]
            assert numbers == sorted(numbers), name
        return [_named(record) for record in records]

    async def _send_the_last(self) -> None:
        """Send three commands more: what is in the topic before them can be read when they can."""
        for _ in range(3):
            self.book(1)
            await OutboxRelay(self.url, self.kafka, self.options).drain()


def _id(record: Record) -> str:
    id: bytes = dict(record.headers)["schedule-id"]
    return id.decode()


def _named(record: Record) -> str:
    return f"{_id(record)}:{record.value.decode()}"


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("sqlite+aiosqlite", marks=pytest.mark.every_case),
        pytest.param("postgresql+psycopg", marks=pytest.mark.every_case),
        "postgresql+asyncpg",
    ]
)
def shop(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Shop:
    """A shop whose relays use this driver."""
    return _shop(settings, request.param, tmp_path, request)


def _shop(settings: Settings, driver: str, folder: Path, request: pytest.FixtureRequest) -> Shop:
    if driver.startswith("sqlite"):
        place = f"/{folder}/shop.db?timeout={LOCK_TIMEOUT_S}"
        shop = Shop(settings, f"sqlite://{place}")
    else:
        place = request.getfixturevalue("postgres")
        shop = Shop(settings, f"postgresql+psycopg://{place}")
    shop.url = f"{driver}://{place}"
    return shop


async def test_what_is_committed_is_sent_once_and_what_is_rolled_back_is_not(shop: Shop) -> None:
    shop.book(20, ids=4)
    with Session(shop.engine) as session:
        shop.outbox.schedule(session, "order-0", b"never", topic="anywhere", after="1h")
        session.flush()
        session.rollback()
    assert await OutboxRelay(shop.url, shop.kafka, shop.options).drain() == 20
    assert shop.rows == 0
    assert sorted(await shop.sent()) == sorted(shop.booked)


@pytest.mark.parametrize("shop", ["sqlite+aiosqlite", "postgresql+asyncpg"], indirect=True)
@pytest.mark.parametrize("kind", ["asyncio", "connection"])
async def test_other_sessions_book_as_well(shop: Shop, kind: str) -> None:
    if kind == "asyncio":
        driver = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}[shop.engine.dialect.name]
        engine = create_async_engine(shop.engine.url.set(drivername=driver))
        async with AsyncSession(engine) as session, session.begin():
            id = shop.outbox.schedule(session, "a", b"0", topic="anywhere", after="1h")
            shop.outbox.cancel(session, "a")
        await engine.dispose()
    else:
        with shop.engine.begin() as connection:
            id = shop.outbox.schedule(connection, "a", b"0", topic="anywhere", after="1h")
            shop.outbox.cancel(connection, "a")
    assert id == "a"
    await OutboxRelay(shop.url, shop.kafka, shop.options).drain()
    records = await read_until(shop.kafka, [shop.topic], lambda found: len(found) == 2)
    assert [dict(record.headers)["schedule-command"] for record in records] == [b"schedule", b"cancel"]


@pytest.mark.soak
def test_postgresql_can_count_refused_rows_without_reading_the_others(postgres: str, settings: Settings) -> None:
    shop = Shop(settings, f"postgresql+psycopg://{postgres}")
    shop.book(3)
    counted: list[str] = []
    with shop.engine.begin() as connection:
        event.listen(connection, "before_cursor_execute", lambda *given: counted.append(given[2]))
        assert Ledger(shop.outbox.tables, "relay", 5_000).count_refused(connection) == 0
        [statement] = counted
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # which is the cheapest in a table of three rows
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {statement}").scalars())
        index = "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = CAST(%s AS regclass)"
        condition = connection.exec_driver_sql(index, (f"{shop.name}_refused",)).scalar()
    assert f"{shop.name}_refused" in plan
    assert condition == "(refused IS NOT NULL)"


@pytest.mark.soak
async def test_relays_share_the_work(postgres: str, settings: Settings) -> None:
    shop = Shop(settings, f"postgresql+psycopg://{postgres}")
    shop.book(400, ids=40)
    relays = [OutboxRelay(shop.url, shop.kafka, shop.options) for _ in range(3)]
    running = [asyncio.create_task(relay.run()) for relay in relays]
    shards = select(shop.outbox.tables.shards.c.relay, func.count()).group_by(shop.outbox.tables.shards.c.relay)

    def is_shared() -> bool:
        with shop.engine.connect() as connection:
            return sorted(count for relay, count in connection.execute(shards) if relay) == [2, 3, 3]

    await eventually(is_shared, what="equal shares")
    shop.book(400, ids=40)
    await eventually(lambda: shop.rows == 0, what="an empty outbox")
    for relay in relays:
        relay.stop()
    await asyncio.gather(*running)
    assert sorted(await shop.sent()) == sorted(shop.booked)


class _Shifted:
    """A clock that is wrong."""

    def __init__(self, by_ms: int) -> None:
        self._by_ms = by_ms

    def now(self) -> int:
        return SystemClock().now() + self._by_ms


@pytest.mark.parametrize("driver", by_day(1, ["sqlite", "postgresql+psycopg"]))
@pytest.mark.soak
async def test_a_relay_whose_clock_is_wrong_takes_no_more_than_its_share(
    driver: str, settings: Settings, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    shop = _shop(settings, driver, tmp_path, request)
    shards, relays = shop.outbox.tables.shards, shop.outbox.tables.relays
    clocks: list[Clock] = [SystemClock(), _Shifted(HOUR), _Shifted(-HOUR)]
    running = [OutboxRelay(shop.url, shop.kafka, shop.options, clock=clock) for clock in clocks]
    tasks = [asyncio.create_task(relay.run()) for relay in running]
    owned = select(func.count()).where(shards.c.relay.is_not(None)).group_by(shards.c.relay)

    def is_shared() -> bool:
        with shop.engine.connect() as connection:
            return sorted(connection.scalars(owned)) == [2, 3, 3]

    await eventually(is_shared, what="equal shares")
    with shop.engine.connect() as connection:
        ends = [until for table in (shards, relays) for until in connection.scalars(select(table.c.until))]
    assert max(ends) - min(ends) < shop.options.lease * 1_000 + MINUTE, "by one clock"
    shop.book(100, ids=20)
    await eventually(lambda: shop.rows == 0, what="an empty outbox")
    for relay in running:
        relay.stop()
    await asyncio.gather(*tasks)
    assert sorted(await shop.sent()) == sorted(shop.booked)


class Troubled(OutboxRelay):
    """A relay that can send nothing of the first shard that it comes to."""

    troubled: int | None = None

    def _shard(self, shard: int) -> ShardRelay:
        if self.troubled is None:
            self.troubled = shard
        if shard == self.troubled:
            raise BrokerError("its transactional id is stuck")
        return super()._shard(shard)


async def test_a_shard_that_cannot_be_sent_does_not_hold_up_the_others(settings: Settings, tmp_path: Path) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    shop.book(2_000, ids=40)
    relay = Troubled(shop.url, shop.kafka, shop.options)
    with pytest.raises(BrokerError, match="stuck"):
        await relay.drain()
    commands = shop.outbox.tables.commands
    with shop.engine.connect() as connection:
        assert list(connection.scalars(select(commands.c.shard).distinct())) == [relay.troubled]


@pytest.mark.parametrize("driver", by_day(1, ["postgresql+psycopg", "postgresql+asyncpg", "postgresql+psycopg_async"]))
@pytest.mark.soak
async def test_a_booking_wakes_its_relay(postgres: str, settings: Settings, driver: str) -> None:
    shop = Shop(settings, f"postgresql+psycopg://{postgres}")
    looks_never = RelayOptions(name=shop.name, app_id=settings.app_id, poll=3_600, lease=3_600)
    relay = OutboxRelay(f"{driver}://{postgres}", shop.kafka, looks_never)
    running = asyncio.create_task(relay.run())
    await eventually(lambda: _listeners(shop), what="a relay that listens")
    for _ in range(3):
        shop.book(1)
        await eventually(lambda: shop.rows == 0, what="a relay that was woken")
    relay.stop()
    await running


def _listeners(shop: Shop) -> int:
    with shop.engine.connect() as connection:
        found = connection.exec_driver_sql("select count(*) from pg_stat_activity where query ~ '^LISTEN'")
        return int(found.scalar_one())


async def test_a_command_that_kafka_refuses_is_set_aside(application: Application, tmp_path: Path) -> None:
    shop = Shop(application.settings, f"sqlite:///{tmp_path}/shop.db")
    await application.configure_topic(shop.topic, **{"max.message.bytes": "50000"})
    with Session(shop.engine) as session, session.begin():
        for id in ("before", "after"):
            shop.outbox.schedule(session, id, b"0", key="one", topic="anywhere", after="1h")
        shop.outbox.schedule(session, "large", bytes(100_000), key="one", topic="anywhere", after="1h")
        shop.outbox.schedule(session, "last", b"0", key="one", topic="anywhere", after="1h")
    relay = OutboxRelay(shop.url, shop.kafka, shop.options)
    running = asyncio.create_task(relay.run())
    await eventually(lambda: shop.rows == 1, what="one row that is left")
    relay.stop()
    await running
    with shop.engine.connect() as connection:
        commands = shop.outbox.tables.commands
        (left,) = connection.execute(select(commands.c.schedule_id, commands.c.refused))
    assert left.schedule_id == "large"
    assert re.match(rf"its record has 100,\d{{3}} bytes, and topic {shop.topic} takes at most 50,000 ", left.refused)
    records = await read_until(shop.kafka, [shop.topic], lambda found: len(found) == 3)
    assert [_id(record) for record in records] == ["before", "after", "last"]


async def test_a_database_that_was_restored_sends_nothing_again(settings: Settings, tmp_path: Path) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    shop.book(5)
    backup = (tmp_path / "shop.db").read_bytes()
    await OutboxRelay(shop.url, shop.kafka, shop.options).drain()
    (tmp_path / "shop.db").write_bytes(backup)
    with pytest.raises(DatabaseBehind, match="restored"):
        await OutboxRelay(shop.url, shop.kafka, shop.options).drain()


async def test_claimed_rows_without_a_mark_are_not_sent_blindly(settings: Settings, tmp_path: Path) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    shop.book(1)
    with shop.engine.begin() as connection:
        connection.execute(shop.outbox.tables.commands.update().values(batch=1))
    with pytest.raises(OutboxInDoubt, match="may have been sent"):
        await OutboxRelay(shop.url, shop.kafka, shop.options).drain()
    assert shop.rows == 1


async def _kill_relays(shop: Shop, app_id: str, kills: int) -> Counter[str]:
    """Kill relays one after the other while somebody books; return how many died after each step."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, DYING, shop.url, shop.kafka, app_id, shop.name, str(kills), "1", stdout=asyncio.subprocess.PIPE
    )
    output = asyncio.create_task(process.communicate())
    while not output.done():
        if shop.rows < 50:
            shop.book(10, ids=10)
        await asyncio.wait([output], timeout=0.02)
    assert process.returncode == 0
    return Counter(json.loads(output.result()[0]))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("driver", ["sqlite", pytest.param("postgresql+psycopg", marks=pytest.mark.soak)])
@pytest.mark.soak
async def test_relays_that_are_killed_lose_and_double_nothing(
    settings: Settings, driver: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kills: int = request.config.getoption("--relay-kills")
    shop = _shop(settings, driver, tmp_path, request)
    died = await _kill_relays(shop, settings.app_id, kills)
    assert died.total() == kills
    assert len(died) >= len(Step)
    await eventually_drained(shop)
    assert sorted(await shop.sent()) == sorted(shop.booked)


@pytest.mark.parametrize("step", by_day(2, STEPS), ids=lambda step: step.name)
@pytest.mark.soak
async def test_a_relay_that_was_frozen_does_no_harm_when_it_wakes(
    settings: Settings, tmp_path: Path, step: Step
) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    shop.book(3)
    frozen, thawed = threading.Event(), threading.Event()

    def freeze(done: Step) -> None:
        if done is step and not frozen.is_set():
            frozen.set()
            thawed.wait(60)

    impatient = replace(shop.options, lease=0.2)
    relay = OutboxRelay(shop.url, shop.kafka, impatient, on_step=freeze)

    async def run_until_all_is_sent() -> None:
        running = asyncio.create_task(relay.run())
        await eventually(lambda: thawed.is_set() and shop.rows == 0, what="an empty outbox")
        relay.stop()
        await running

    running = asyncio.create_task(asyncio.to_thread(asyncio.run, run_until_all_is_sent()))
    await eventually(frozen.is_set, what="a relay that stands still")
    await eventually_drained(shop)
    shop.book(3)
    thawed.set()
    await running
    assert sorted(await shop.sent()) == sorted(shop.booked)


class KilledError(BaseException):
    """Ends a relay."""


@pytest.mark.parametrize("step", [Step.CLAIMED, Step.SENT], ids=lambda step: step.name)
@pytest.mark.soak
async def test_a_relay_that_gets_a_shard_back_sends_what_another_left(
    settings: Settings, tmp_path: Path, step: Step
) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    over_at_once = replace(shop.options, lease=-0.001)

    def kill(done: Step) -> None:
        if done is step:
            raise KilledError

    frozen = OutboxRelay(shop.url, shop.kafka, over_at_once)
    killed = OutboxRelay(shop.url, shop.kafka, over_at_once, on_step=kill)
    await frozen._prepare()
    shop.book(1)
    assert await frozen._round() == 1
    with Session(shop.engine) as session, session.begin():
        shop.booked.append("order-0:1")
        shop.outbox.schedule(session, "order-0", b"1", topic="anywhere", after="1h")
    with pytest.raises(KilledError):
        await killed._round()
    await frozen._round()
    assert shop.rows == 0
    await frozen._close()
    await killed._close()
    assert sorted(await shop.sent()) == sorted(shop.booked)


async def eventually_drained(shop: Shop) -> None:
    """Wait for the leases of relays that are gone, and send what they left."""

    async def is_drained() -> bool:
        await OutboxRelay(shop.url, shop.kafka, shop.options).drain()
        return shop.rows == 0

    await eventually(is_drained, every=0.1, what="an empty outbox")


async def test_a_blocking_relay_runs_in_a_thread(settings: Settings, tmp_path: Path) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    shop.book(3)
    relay = BlockingOutboxRelay(shop.url, shop.kafka, shop.options)
    running = asyncio.create_task(asyncio.to_thread(relay.run))
    await eventually(lambda: shop.rows == 0, what="an empty outbox")
    relay.stop()
    await running


def test_the_command_line_sends_what_is_booked(settings: Settings, tmp_path: Path) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    shop.book(2)
    arguments = ["outbox", "relay", "--database", shop.url, "--drain", "--broker", settings.broker]
    ran = CliRunner().invoke(cli, [*arguments, "--app-id", settings.app_id])
    assert ran.stdout == "2 commands sent\n", ran.output
    other = ["outbox", "relay", "--database", f"sqlite:///{tmp_path}/other.db"]
    ran = CliRunner().invoke(cli, other)
    assert "create the tables" in str(ran.exception)


async def test_bookings_wait_while_kafka_cannot_be_reached(settings: Settings, tmp_path: Path) -> None:
    shop = Shop(settings, f"sqlite:///{tmp_path}/shop.db")
    shop.book(2)
    with pytest.raises(BrokerError, match="cannot take over"):
        await OutboxRelay(shop.url, f"127.0.0.1:{free_port()}", shop.options).drain()
    assert shop.rows == 2
    assert await OutboxRelay(shop.url, shop.kafka, shop.options).drain() == 2
    assert sorted(await shop.sent()) == sorted(shop.booked)
