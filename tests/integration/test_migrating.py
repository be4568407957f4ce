"""The guides to migrating: their commands and programs, beside real Celery, APScheduler and PostgreSQL.

The schedulers on Kafka do not run here: records that their producers write are copied to a shadow, and what that
delivers is put where the other scheduler would have delivered it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord
from aiokafka.admin import AIOKafkaAdminClient
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import AndTrigger
from apscheduler.triggers.cron import CronTrigger
from support.acls import grant
from support.ajenda import HOUR, Ajenda, now
from support.cases import by_day
from support.foreign import etf1_headers, karafka_headers, skyuk_json, task, task_key
from support.home import ROOT, Home, at_home
from support.postgres import running_postgres
from support.reading import read_until
from support.secured import SecuredKafka
from support.snippets import comparable, lines_of, run_python, snippets
from support.waiting import eventually

from light_scheduler.kafka.rights import Right
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.model import EventType
from light_scheduler.settings import load_settings
from light_scheduler.testing import InMemoryScheduler, Kafka

pytestmark = pytest.mark.integration

SUFFIX = uuid.uuid4().hex[:8]
TOPICS = {
    "karafka": "scheduled_messages",
    "etf1": "schedules",
    "sky-uk": "scheduler",
    "light-4j": "light-scheduler",
}
DIALECTS = {"karafka": "karafka", "etf1": "etf1", "sky-uk": "skyuk", "light-4j": "light4j"}
PROGRAMS = ROOT / "examples" / "migrating"
ENDED = [("schedule_schema_version", b"1.0.0"), ("schedule_source_type", b"cancel")]
"""The headers of a cancel of Karafka."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    topics = [f"{topic}-{SUFFIX}:{DIALECTS[page]}" for page, topic in TOPICS.items()]
    folder = tmp_path_factory.mktemp("home")
    with at_home(folder, commands_topics=",".join(["light-scheduler-commands", *topics])) as home:
        yield home


def commands_of(page: str) -> list[tuple[str, str | None]]:
    """Return the shell blocks of a guide that install nothing, each with the output that is shown below it."""
    found = [each for each in snippets(ROOT / "docs" / f"migrating-{page}.md") if each.language == "sh"]
    return [(snippet.text, snippet.shown) for snippet in found if not snippet.text.startswith("pip ")]


def command_record(page: str, due: int, target: str) -> tuple[bytes, bytes, list[tuple[str, bytes | None]]]:
    """Return a record that a producer of the other scheduler writes."""
    if page == "karafka":
        return b"order-1", b"pay!", karafka_headers(due, topic=target)
    if page == "etf1":
        return b"order-1", b"pay!", etf1_headers(due, topic=target)
    if page == "sky-uk":
        return b"order-1", skyuk_json(due, b"pay!", topic=target), []
    once = {"timeUnit": "SECONDS", "time": HOUR}  # and again in 1,000 hours
    return task_key("order-1"), task(due, frequency=once, start=due - HOUR * 1_000, topic=target), []


@pytest.mark.parametrize(
    "page",
    by_day(1, ["etf1", *(pytest.param(page, marks=pytest.mark.soak) for page in TOPICS if page != "etf1")]),
)
@pytest.mark.soak
async def test_a_shadow_delivers_what_the_other_scheduler_does(
    page: str, home: Home, kafka: Kafka, tmp_path: Path
) -> None:
    topic, target, source = f"{TOPICS[page]}-{SUFFIX}", f"mails-{page}-{SUFFIX}", kafka.bootstrap_servers
    for name in (topic, target):
        await asyncio.to_thread(create_topic, source, name, home.application.settings.partitions)
    key, value, headers = command_record(page, now() // 1_000 * 1_000 + 2_000, target)
    async with AIOKafkaProducer(bootstrap_servers=source) as producer:
        await producer.send_and_wait(topic, value, key, headers=headers)

    shadow = home.application.bootstrap_servers
    names = {"kafka-1:9092": source, "127.0.0.1:9092": shadow, f" {TOPICS[page]}": f" {topic}", " mails": f" {target}"}

    def placed(line: str) -> str:
        return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], line)

    first, second, third = (lines_of(block) for block, _ in commands_of(page)[:3])
    (up,) = first
    assert f"light-scheduler up --commands-topics {TOPICS[page]}:{DIALECTS[page]} --partitions " in up
    make, copy = map(placed, second)
    assert await asyncio.to_thread(home.run, make) == f"{target} created\n"
    with home.running(copy, tmp_path / "shadow.log"):
        [delivered] = await read_until(shadow, [target], lambda found: len(found) == 1)
        await eventually(partial(has_noted, source, topic), every=0.1, what="the shadow to note what it has copied")
    async with AIOKafkaProducer(bootstrap_servers=source) as producer:
        at = delivered.timestamp - 5
        await producer.send_and_wait(target, delivered.value, delivered.key, timestamp_ms=at)
    for line in third:
        printed = await asyncio.to_thread(home.run, placed(line))
    assert printed.splitlines()[0] == "in both: 1"
    assert printed.endswith("was later by 5 ms (median), 5 ms (maximum)\n")
    again = f"python examples/migrating/shadow.py {source} {shadow} {topic} --once"
    assert await asyncio.to_thread(home.run, again) == "0 records copied\n"


async def has_noted(servers: str, topic: str) -> bool:
    """Return whether the shadow of a topic has committed how far it is: what it copies may be delivered before that."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        positions = await admin.list_consumer_group_offsets(f"shadow-of-{topic}")
        return any(position.offset > 0 for position in positions.values())
    finally:
        await admin.close()


async def told(home: Home, target: str, firings: int) -> None:
    """Wait until the history tells of so many firings to a topic: they may be read a moment before that."""

    async def is_so() -> bool:
        events = await home.application.history()
        return sum(event.event is EventType.FIRED and event.target_topic == target for event in events) >= firings

    await eventually(is_so, every=0.2, what=f"{firings} firings to {target} in the history")


@pytest.mark.parametrize("page", TOPICS)
def test_the_settings_of_the_cut_over_are_those_of_the_shadow(page: str, tmp_path: Path) -> None:
    [text] = [each.text for each in snippets(ROOT / "docs" / f"migrating-{page}.md") if each.language == "toml"]
    file = tmp_path / "light-scheduler.toml"
    file.write_text(text, encoding="utf-8")
    settings = load_settings(environment={}, file=file)
    (source,) = settings.inputs
    assert (source.name, source.dialect, settings.replication_factor) == (TOPICS[page], DIALECTS[page], 3)
    assert "127.0.0.1" not in settings.broker


async def test_a_source_with_another_number_of_partitions_is_named(home: Home, kafka: Kafka) -> None:
    topic, shadow = f"larger-{SUFFIX}", home.application.bootstrap_servers
    await asyncio.to_thread(create_topic, kafka.bootstrap_servers, topic, 3)
    await asyncio.to_thread(create_topic, shadow, topic, 2)
    command = f"python examples/migrating/shadow.py {kafka.bootstrap_servers} {shadow} {topic} --once 2>&1 || true"
    printed = await asyncio.to_thread(home.run, command)
    advice = "start `light-scheduler up` with --partitions 3 and a new --data-dir"
    assert printed.endswith(f"{topic} has 2 partitions on {shadow}, and 3 at its source: {advice}\n")


@pytest.mark.soak
@pytest.mark.every_case
async def test_the_source_of_a_comparison_may_need_tls_and_a_login(
    home: Home, secured: SecuredKafka, tmp_path: Path
) -> None:
    kind, topic, shadow = "SCRAM-SHA-512", f"secured-{SUFFIX}", home.application.bootstrap_servers
    await asyncio.to_thread(create_topic, secured.servers, topic, 1)
    async with AIOKafkaProducer(bootstrap_servers=secured.servers) as producer:
        await producer.send_and_wait(topic, b"pay!", b"order-1", timestamp_ms=now())
    rights = [Right("topic", topic, ("Read",)), Right("group", f"shadow-of-{topic}", ("Read",))]
    await asyncio.to_thread(grant, secured.servers, secured.principal(kind), rights)
    settings = secured.settings(kind)
    source = settings.pop("broker").removeprefix("kafka://")
    password = tmp_path / "password"
    password.write_text(settings.pop("sasl_password"), encoding="utf-8")
    file = tmp_path / "source.toml"
    lines = [f"{name} = {value!r}" for name, value in {**settings, "sasl_password_file": str(password)}.items()]
    file.write_text("\n".join(lines), encoding="utf-8")
    given = f"{source} {shadow} {topic} --source-config {file}"
    copied = await asyncio.to_thread(home.run, f"python examples/migrating/shadow.py {given} --once")
    assert copied == "1 records copied\n"
    printed = await asyncio.to_thread(home.run, f"python examples/migrating/compare.py {given}")
    assert printed.endswith("was later by 0 ms (median), 0 ms (maximum)\n")


@pytest.mark.parametrize("page", ["etf1", "karafka", "sky-uk"])
async def test_what_was_delivered_is_marked_before_the_other_scheduler_is_started_again(
    page: str, home: Home, tmp_path: Path
) -> None:
    topic, target = f"{TOPICS[page]}-{SUFFIX}", f"back-{page}-{SUFFIX}"
    servers = home.application.bootstrap_servers
    await asyncio.to_thread(create_topic, servers, topic, home.application.settings.partitions)
    await asyncio.to_thread(create_topic, servers, target, 1)
    ahead = now() // 1_000 * 1_000 + 1_000
    keys = {b"fired": ahead, b"\xff\x00": ahead, b"pending": ahead + HOUR, b"cancelled": ahead + HOUR}
    ended = ENDED if page == "karafka" else []
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for key, due in keys.items():
            _, value, headers = command_record(page, due, target)
            await producer.send_and_wait(topic, value, key, headers=headers)
        await producer.send_and_wait(topic, None, b"cancelled", headers=ended)
        await read_until(servers, [target], lambda found: len(found) == 2)
    await told(home, target, 2)
    file = tmp_path / "light-scheduler.toml"
    file.write_text(f'commands_topics = ["{topic}:{DIALECTS[page]}"]\n', encoding="utf-8")
    [block] = [text for text, _ in commands_of(page) if "go_back.py" in text]
    dry, write = (line.replace(f" {TOPICS[page]} ", f" {topic} ") for line in lines_of(block))
    dry, write = (line.replace("light-scheduler.toml", str(file)) for line in (dry, write))
    printed = (await asyncio.to_thread(home.run, dry)).splitlines()
    assert printed.pop() == f"{len(printed)} keys delivered; add --write to mark them"
    assert {line.partition(": ")[2] for line in printed} - {"b'order-1'"} == {r"b'fired'", r"b'\xff\x00'"}
    assert sorted((await asyncio.to_thread(home.run, write)).splitlines()[:-1]) == sorted(printed)

    def is_marked(found: list[ConsumerRecord]) -> bool:
        return {each.key for each in found if each.value is None} >= keys.keys() - {b"pending"}

    last = {each.key: each for each in await read_until(servers, [topic], is_marked)}
    assert last[b"pending"].value is not None
    assert all(list(last[key].headers) == ended for key in keys.keys() - {b"pending"})
    assert await asyncio.to_thread(home.run, dry) == "0 keys delivered; add --write to mark them\n"


@pytest.mark.parametrize("page", ["etf1", "karafka", "sky-uk"])
async def test_a_schedule_is_not_taken_for_one_of_the_same_id_from_another_commands_topic(
    page: str, home: Home, tmp_path: Path
) -> None:
    topic, target = f"{TOPICS[page]}-{SUFFIX}", f"alike-{page}-{SUFFIX}"
    servers = home.application.bootstrap_servers
    await asyncio.to_thread(create_topic, servers, topic, home.application.settings.partitions)
    await asyncio.to_thread(create_topic, servers, target, 1)
    ahead = now() // 1_000 * 1_000 + 1_000
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer, home.application.client() as scheduler:
        for key, due in ((b"waits", ahead + HOUR), (b"fires", ahead), (b"elsewhere", ahead + HOUR)):
            _, value, headers = command_record(page, due, target)
            await producer.send_and_wait(topic, value, key, headers=headers)
        await read_until(servers, [target], lambda found: len(found) == 1)
        other = home.application.client(tenant="other")
        async with other:
            await other.schedule("elsewhere", topic=target, after=0)
        await scheduler.schedule("waits", topic=target, after=0)
        await scheduler.schedule("fires", topic=target, after="1h")
        await read_until(servers, [target], lambda found: len(found) == 3)
        await scheduler.cancel("fires")
    await told(home, target, 3)
    file = tmp_path / "light-scheduler.toml"
    file.write_text(f'commands_topics = ["light-scheduler-commands", "{topic}:{DIALECTS[page]}"]\n', encoding="utf-8")
    command = f"python examples/migrating/go_back.py {topic} --config {file}"
    printed = (await asyncio.to_thread(home.run, command)).splitlines()
    alike = [line.partition(": ")[2] for line in printed if re.search("'(waits|fires|elsewhere)'", line)]
    left_out = "is left out: an id of another commands topic has fired, or this one at another time or to another topic"
    assert sorted(alike) == ["b'fires'", f"b'waits' {left_out}"]
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for key in (b"waits", b"fires", b"elsewhere"):
            await producer.send_and_wait(topic, None, key, headers=ENDED if page == "karafka" else [])


async def test_a_comparison_shows_what_only_one_has(home: Home, kafka: Kafka) -> None:
    target = f"compared-{SUFFIX}"
    for servers, payloads in ((kafka.bootstrap_servers, "aab"), (home.application.bootstrap_servers, "abc")):
        await asyncio.to_thread(create_topic, servers, target, 1)
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for payload in payloads:
                await producer.send_and_wait(target, payload.encode(), b"key")
    command = f"python examples/migrating/compare.py {kafka.bootstrap_servers} $KAFKA {target} || echo exit code $?"
    printed = (await asyncio.to_thread(home.run, command)).splitlines()
    assert printed[0] == "in both: 2"
    assert printed[1:3] == [f"only on {kafka.bootstrap_servers}: 1", "  b'key': b'a'"]
    assert printed[3:5] == [f"only on {home.application.bootstrap_servers}: 1", "  b'key': b'c'"]
    assert printed[-1] == "exit code 1"


@pytest.mark.parametrize("page", [pytest.param("celery", marks=pytest.mark.soak), "quartz-spring"])
def test_the_commands_of_a_guide_print_what_is_shown(page: str, home: Home) -> None:
    for block, shown in commands_of(page):
        for line in lines_of(block):
            printed = home.run(line)
        assert shown is not None
        assert comparable(printed) == comparable(shown)


@pytest.mark.parametrize("page", ["ajenda", "celery", "quartz-spring"])
async def test_the_python_of_a_guide_runs(page: str, home: Home) -> None:
    code = [each.text for each in snippets(ROOT / "docs" / f"migrating-{page}.md") if each.language == "python"]
    assert code
    for snippet in code:
        await run_python(snippet.replace("127.0.0.1:9092", home.application.bootstrap_servers), {})


@pytest.mark.soak
def test_the_commands_of_the_guide_from_ajenda_take_over_what_is_there(home: Home) -> None:
    with running_postgres() as server:
        ajenda = Ajenda(f"postgresql+psycopg://{server.address}")
        for _ in range(2):
            ajenda.book(now() + HOUR)
        ajenda.book_periodic(1, f"{HOUR:x}", now() + HOUR)
        [(block, shown)] = commands_of("ajenda")
        for line in lines_of(block):
            place = line.replace("postgresql+psycopg://app@db/shop", ajenda.url)
            printed = home.run(place.replace("--topic mails", f"--topic {ajenda.topic}"))
        assert printed == shown
        assert ajenda.rows() == 0


def program(name: str) -> ModuleType:
    """Import a program of examples/migrating."""
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHOP = """
from pathlib import Path
from celery import Celery
from celery.schedules import crontab

FOLDER = Path({folder!r})
app = Celery("shop", broker="filesystem://")
folders = dict.fromkeys(("data_folder_in", "data_folder_out", "control_folder"), str(FOLDER))
app.conf.broker_transport_options = folders
app.conf.beat_schedule = {{
    "often": {{"task": "shop.remind", "schedule": 1.0, "args": ["by beat"]}},
    "daily": {{"task": "shop.remind", "schedule": crontab(hour=9, minute=30, day_of_week="mon-fri")}},
}}


@app.task
def remind(order):
    (FOLDER / "reminded").open("a").write(order + "\\n")


def work(order):
    (FOLDER / "worked").open("a").write(order + "\\n")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """A folder with a module `shop`: an application of Celery, and a function."""
    (tmp_path / "shop.py").write_text(SHOP.format(folder=str(tmp_path)), encoding="utf-8")
    yield tmp_path
    sys.modules.pop("shop", None)


@pytest.mark.soak
async def test_workers_of_celery_run_what_is_scheduled_here(home: Home, shop: Path) -> None:
    bridge, place = "python examples/migrating/celery_bridge.py shop:app", {"PYTHONPATH": str(shop)}
    home.run("python examples/clients/make_topic.py tasks")
    assert home.run(f"{bridge} declare", **place) == "declared often\ndeclared daily\n"
    async with home.application.client() as scheduler:
        payload = program("celery_bridge").call("shop.remind", ["by countdown"])
        await scheduler.schedule("remind-1", payload, topic="tasks", after="1s")
        worker = "celery -A shop worker --pool solo --concurrency 1"
        with (
            home.running(worker, shop / "worker.log", **place),
            home.running(f"{bridge} run", shop / "bridge.log", **place),
        ):
            reminded = shop / "reminded"
            await eventually(
                lambda: reminded.exists() and {"by beat", "by countdown"} <= set(reminded.read_text().splitlines()),
                every=0.2,
                what="tasks that Celery has run",
            )
        await scheduler.cancel("beat-often")


def test_entries_of_beat_become_the_same_rules() -> None:
    from celery.schedules import crontab, schedule

    rule = program("celery_bridge").rule
    weekdays = crontab(minute="*/15", hour=9, day_of_month="1-3", month_of_year=12, day_of_week="mon,fri")
    expression = "0 0,15,30,45 9 1,2,3 12 1,5"
    assert rule(weekdays, "UTC") == {"cron": expression, "cron_dialect": "spring", "timezone": "UTC"}
    assert rule(30, "UTC") == rule(timedelta(seconds=30), "UTC") == rule(schedule(30), "UTC")
    assert rule(30, "UTC") == {"every": timedelta(seconds=30)}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"minute": 0, "hour": 9, "day_of_month": "1-7", "day_of_week": "mon"},
        {"minute": 0, "hour": [7, 12]},
        {"minute": {30, 5}, "hour": "8-17/3", "day_of_week": "fri-mon"},
        {"minute": 0, "hour": 3, "day_of_week": "sunday"},
        {"minute": 0, "hour": 3, "day_of_month": "2-30/2", "month_of_year": "*/3"},
        {"minute": 0, "hour": 3, "day_of_month": 13, "day_of_week": "fri"},
    ],
    ids=str,
)
async def test_crontabs_of_celery_fire_at_the_same_times_here(fields: dict[str, Any]) -> None:
    from celery.schedules import crontab

    when, start = crontab(**fields), datetime(2030, 1, 15, 12, 0, 30, tzinfo=UTC)
    expected: list[int] = []
    last = start
    for _ in range(8):
        begun, until_next, _ = when.remaining_delta(last, tz=UTC)
        last = begun + until_next
        expected.append(int(last.timestamp() * 1_000))
    rule = program("celery_bridge").rule(when, "UTC")
    assert await InMemoryScheduler().preview(count=8, accepted=start, **rule) == expected


@pytest.mark.soak
async def test_jobs_of_apscheduler_are_taken_and_run(home: Home, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(shop)
    store, place = f"sqlite:///{shop}/jobs.sqlite", {"PYTHONPATH": str(shop)}
    jobs = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(store)}, timezone="UTC")
    jobs.start(paused=True)
    jobs.add_job("shop:work", "interval", seconds=1, args=["often"], id="often", misfire_grace_time=None)
    jobs.add_job("shop:work", "date", run_date=datetime(2100, 1, 1, tzinfo=UTC), args=["once"], id="once")
    jobs.add_job("shop:work", "cron", hour=9, day_of_week="0-4", args=["daily"], id="daily")
    jobs.add_job("shop:work", "cron", day="last", args=["monthly"], id="monthly")
    later = {"start_date": datetime(2100, 1, 1, tzinfo=UTC), "args": ["later"], "id": "later"}
    jobs.add_job("shop:work", "cron", hour=9, **later)
    jobs.add_job("shop:work", "interval", seconds=1, args=["paused"], id="paused", next_run_time=None)
    jobs.add_job("shop:work", "cron", second="*", args=[datetime(2100, 1, 1, tzinfo=UTC)], id="no-json")
    for id, size in (("too-large", 2_000_000), ("refused", 1_010_000)):
        jobs.add_job("shop:work", "cron", second="*", args=["x" * size], id=id)
    planned = {job.id: job.next_run_time for job in jobs.get_jobs()}
    jobs.shutdown()
    [(block, _)] = commands_of("apscheduler")
    for line in lines_of(block):
        printed = home.run(line.replace("sqlite:///jobs.sqlite", store), **place)
        if " take" in line:
            taken = dict(each.split(" ", 1) for each in printed.splitlines())
    for id in ("monthly", "no-json", "too-large", "refused"):
        assert taken.pop(id).startswith("not taken: ")
    assert taken == dict.fromkeys(("often", "once", "daily", "later", "paused"), "scheduled")
    async with home.application.client(url=home.application.workers[0].url) as scheduler:
        for id in ("once", "daily", "later"):
            pending = await scheduler.get(id)
            assert pending is not None
            assert pending.due == planned[id].timestamp() * 1_000
        paused = await scheduler.get("paused")
        assert paused is not None
        assert paused.state == "paused"
        run = f"python examples/migrating/apscheduler_jobs.py {store} run"
        with home.running(run, shop / "run.log", **place):
            worked = shop / "worked"
            await eventually(lambda: worked.exists() and worked.read_text(), every=0.2, what="a job that ran")
        assert set(worked.read_text().splitlines()) == {"often"}
        for id in ("often", "paused"):
            await scheduler.cancel(id)


class FakeJob:
    """What `rule` reads of a job."""

    misfire_grace_time = 60
    coalesce = True

    def __init__(self, trigger: Any) -> None:
        self.trigger = trigger


@pytest.mark.parametrize(
    "fields",
    [
        {"hour": 9},
        {"second": "*/20"},
        {"minute": "*/10", "hour": "8-17", "day_of_week": "mon-fri"},
        {"day_of_week": "0,6", "hour": 3},
        {"day": 13, "day_of_week": 4},
        {"month": "1,7", "day": 1},
    ],
    ids=str,
)
async def test_cron_triggers_of_apscheduler_fire_at_the_same_times_here(fields: dict[str, Any]) -> None:
    zone = ZoneInfo("Europe/Prague")
    trigger, start = CronTrigger(**fields, timezone=zone), datetime(2030, 1, 15, 12, 0, 30, tzinfo=zone)
    expected: list[int] = []
    last = start
    for _ in range(8):
        last = trigger.get_next_fire_time(last, last + timedelta(milliseconds=1))
        expected.append(int(last.timestamp() * 1_000))
    rule = program("apscheduler_jobs").rule(FakeJob(trigger))
    assert await InMemoryScheduler().preview(count=8, accepted=start, **rule) == expected


@pytest.mark.parametrize(
    "trigger",
    [
        CronTrigger(day="last"),
        CronTrigger(day="2nd fri"),
        CronTrigger(week=1),
        CronTrigger(year=2031),
        CronTrigger(day_of_week="*/2"),
        AndTrigger([CronTrigger(hour=1)]),
    ],
    ids=str,
)
def test_triggers_of_apscheduler_without_an_equal_are_not_taken(trigger: Any) -> None:
    with pytest.raises(ValueError, match="has no equal"):
        program("apscheduler_jobs").rule(FakeJob(trigger))
