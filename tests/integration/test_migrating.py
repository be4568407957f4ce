"""The guides to migrating: their commands and programs, beside real Celery, APScheduler and PostgreSQL.

The schedulers on Kafka do not run here: records that their producers write are copied to a shadow, and what that
delivers is put where the other scheduler would have delivered it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiokafka import AIOKafkaProducer
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import AndTrigger
from apscheduler.triggers.cron import CronTrigger
from support.ajenda import HOUR, Ajenda, now
from support.foreign import etf1_headers, karafka_headers, skyuk_json, task, task_key
from support.home import ROOT, Home, at_home
from support.postgres import running_postgres
from support.reading import read_until
from support.snippets import comparable, lines_of, run_python, snippets
from support.waiting import eventually

from light_scheduler.kafka.topic_admin import create_topic
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
ELSEWHERE = ("light-scheduler up",)
PROGRAMS = ROOT / "examples" / "migrating"


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
    "page", [pytest.param(page, marks=[] if page == "etf1" else pytest.mark.soak) for page in TOPICS]
)
async def test_a_shadow_delivers_what_the_other_scheduler_does(page: str, home: Home, kafka: Kafka) -> None:
    topic, target, source = f"{TOPICS[page]}-{SUFFIX}", f"mails-{page}-{SUFFIX}", kafka.bootstrap_servers
    for name in (topic, target):
        await asyncio.to_thread(create_topic, source, name, home.application.settings.partitions)
    key, value, headers = command_record(page, now() // 1_000 * 1_000 + 2_000, target)
    async with AIOKafkaProducer(bootstrap_servers=source) as producer:
        await producer.send_and_wait(topic, value, key, headers=headers)

    [(block, _)] = commands_of(page)
    shadow = home.application.bootstrap_servers
    for line in lines_of(block):
        command = line.replace("kafka-1:9092", source).replace("127.0.0.1:9092", shadow)
        command = command.replace(f" {TOPICS[page]} --once", f" {topic} --once").replace(" mails", f" {target}")
        if "compare.py" in command:
            [delivered] = await read_until(shadow, [target], lambda found: len(found) == 1)
            async with AIOKafkaProducer(bootstrap_servers=source) as producer:
                at = delivered.timestamp - 5
                await producer.send_and_wait(target, delivered.value, delivered.key, timestamp_ms=at)
        if not command.startswith(ELSEWHERE):
            printed = await asyncio.to_thread(home.run, command)
    assert printed.splitlines()[0] == "in both: 1"
    assert printed.endswith("was later by 5 ms (median), 5 ms (most)\n")
    again = f"python examples/migrating/shadow.py {source} {shadow} {topic} --once"
    assert await asyncio.to_thread(home.run, again) == "0 records copied\n"


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


@pytest.mark.parametrize("page", ["celery", "quartz-spring"])
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
    weekdays = crontab(minute="*/15", hour=9, day_of_month="1-7", month_of_year=12, day_of_week="mon,fri")
    assert rule(weekdays, "Europe/Prague") == {"cron": "*/15 9 1-7 12 mon,fri", "timezone": "Europe/Prague"}
    assert rule(30, "UTC") == rule(timedelta(seconds=30), "UTC") == rule(schedule(30), "UTC")
    assert rule(30, "UTC") == {"every": timedelta(seconds=30)}


async def test_jobs_of_apscheduler_are_taken_and_run(home: Home, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(shop)
    store, place = f"sqlite:///{shop}/jobs.sqlite", {"PYTHONPATH": str(shop)}
    jobs = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(store)}, timezone="UTC")
    jobs.start(paused=True)
    jobs.add_job("shop:work", "interval", seconds=1, args=["often"], id="often", misfire_grace_time=None)
    jobs.add_job("shop:work", "date", run_date=datetime(2100, 1, 1, tzinfo=UTC), args=["once"], id="once")
    jobs.add_job("shop:work", "cron", hour=9, day_of_week="0-4", args=["daily"], id="daily")
    jobs.add_job("shop:work", "cron", day="last", args=["monthly"], id="monthly")
    planned = {job.id: job.next_run_time for job in jobs.get_jobs()}
    jobs.shutdown()
    [(block, _)] = commands_of("apscheduler")
    for line in lines_of(block):
        printed = home.run(line.replace("sqlite:///jobs.sqlite", store), **place)
        if " take" in line:
            taken = dict(each.split(" ", 1) for each in printed.splitlines())
    assert taken.pop("monthly").startswith("not taken: ")
    assert taken == {"often": "scheduled", "once": "scheduled", "daily": "scheduled"}
    async with home.application.client(url=home.application.workers[0].url) as scheduler:
        for id in ("once", "daily"):
            pending = await scheduler.get(id)
            assert pending is not None
            assert pending.due == planned[id].timestamp() * 1_000
        run = f"python examples/migrating/apscheduler_jobs.py {store} run"
        with home.running(run, shop / "run.log", **place):
            worked = shop / "worked"
            await eventually(worked.exists, every=0.2, what="a job that ran")
        await scheduler.cancel("often")


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
