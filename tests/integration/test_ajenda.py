"""Appointments of Ajenda that become schedules, on a real PostgreSQL and a real Kafka."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.ajenda import HOUR, Ajenda, Consumers, now
from support.application import Application
from support.postgres import running_postgres
from support.reading import Record, read_until
from support.waiting import eventually

from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.outbox.ajenda import AjendaTopic
from light_scheduler.settings import Settings, load_settings
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

COMMAND = (sys.executable, "-c", "from light_scheduler.cli import main; main()")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as server:
        yield f"postgresql+psycopg://{server.address}"


@pytest.fixture
def ajenda(postgres: str) -> Ajenda:
    return Ajenda(postgres)


@pytest.fixture
def settings(kafka: Kafka) -> Settings:
    """An application with topics and no worker."""
    app_id = f"ajenda-{uuid.uuid4().hex[:8]}"
    settings = load_settings({"app_id": app_id, "broker": f"kafka://{kafka.bootstrap_servers}"}, environment={})
    create_topics(settings)
    return settings


def arguments(ajenda: Ajenda, settings: Settings, *more: str) -> list[str]:
    name = f"outbox_{ajenda.topic}"
    place = ["--database", ajenda.url, "--topic", ajenda.topic, "--target-topic", "mails", "--name", name]
    kafka = ["--app-id", settings.app_id, "--broker", settings.broker, "--log-level", "WARNING"]
    return ["outbox", "import-ajenda", *place, *kafka, *more]


async def taken_over(ajenda: Ajenda, settings: Settings, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end: in a process of its own, since it handles signals."""
    return await asyncio.to_thread(
        subprocess.run, [*COMMAND, *arguments(ajenda, settings, *more)], capture_output=True, text=True, check=False
    )


async def commands(settings: Settings, count: int) -> dict[str, Record]:
    """Return the first commands by their ids. Fails if an id comes twice."""
    topic = settings.topics.commands
    records = await read_until(settings.connection.bootstrap_servers, [topic], lambda found: len(found) >= count)
    found = {dict(record.headers)["schedule-id"].decode(): record for record in records}
    assert len(found) == len(records)
    return found


def control(record: Record) -> dict[str, str]:
    """Return the headers of a command, those of the scheduler without their prefix."""
    return {name.removeprefix("schedule-"): (value or b"").decode() for name, value in record.headers}


async def test_an_appointment_keeps_its_time_payload_ttl_and_columns(ajenda: Ajenda, settings: Settings) -> None:
    due = now() + HOUR
    plain, rich = ajenda.book(due, None), ajenda.book(due + 1, "pay!", ttl=60_000, kind="reminder")
    ran = await taken_over(ajenda, settings)
    assert ran.stdout == "2 appointments and 0 periodic ones taken over, 0 rows left\n", ran.stderr
    found = await commands(settings, 2)
    assert found[f"{ajenda.topic}-{plain}"].value is None
    record = found[f"{ajenda.topic}-{rich}"]
    assert record.value == b"pay!"
    asked = control(record)
    assert (asked["at"], asked["ttl"], asked["target-topic"], asked["kind"]) == (
        str(due + 1),
        "60000",
        "mails",
        "reminder",
    )


@pytest.mark.parametrize(
    ("pattern_type", "pattern", "skip_missed", "expected"),
    [
        (1, "1388", True, {"every": "5000", "misfire": "skip"}),
        pytest.param(1, "1388", False, {"every": "5000", "misfire": "all"}, marks=pytest.mark.every_case),
        (2, "1388", True, {"every": "5000", "mode": "fixed-delay"}),
        pytest.param(10, "0 9 * * 1-5", True, {"cron": "0 9 * * 1-5"}, marks=pytest.mark.soak),
        (11, "0 9 * * 1-5|0 12 * * 6", True, {"cron": "0 9 * * 1-5|0 12 * * 6", "cron-dialect": "cron4j"}),
        pytest.param(
            12,
            "0 0 9 ? * MON-FRI",
            True,
            {"cron": "0 0 9 ? * MON-FRI", "cron-dialect": "quartz"},
            marks=pytest.mark.soak,
        ),
        pytest.param(
            13,
            "0 0 9 * * MON-FRI",
            True,
            {"cron": "0 0 9 * * MON-FRI", "cron-dialect": "spring"},
            marks=pytest.mark.every_case,
        ),
    ],
)
async def test_a_periodic_appointment_becomes_a_series_from_its_next_iteration_on(
    ajenda: Ajenda,
    settings: Settings,
    pattern_type: int,
    pattern: str,
    skip_missed: bool,
    expected: dict[str, str],
) -> None:
    due = now() + HOUR
    id = ajenda.book_periodic(pattern_type, pattern, due, skip_missed=skip_missed, iterations=3)
    ran = await taken_over(ajenda, settings)
    assert ran.stdout == "0 appointments and 1 periodic ones taken over, 0 rows left\n", ran.stderr
    record = (await commands(settings, 1))[f"{ajenda.topic}-periodic-{id}"]
    asked = control(record)
    assert asked.items() >= {**expected, "start": str(due), "on-conflict": "keep"}.items()
    assert record.value == b"again"


@pytest.mark.soak
async def test_what_a_consumer_has_at_hand_is_left_to_it(ajenda: Ajenda, settings: Settings) -> None:
    at_hand, locked = ajenda.book(now()), ajenda.book(now())
    free = ajenda.book(now())
    ajenda.put_at_hand(at_hand, now() + HOUR)
    with ajenda.locked(locked):
        ran = await taken_over(ajenda, settings)
    assert ran.stdout == "1 appointments and 0 periodic ones taken over, 2 rows left\n", ran.stderr
    assert list(await commands(settings, 1)) == [f"{ajenda.topic}-{free}"]
    ajenda.put_at_hand(at_hand, now())
    ran = await taken_over(ajenda, settings)
    assert ran.stdout.startswith("2 appointments"), ran.stderr


@pytest.mark.soak
async def test_a_periodic_appointment_is_left_while_an_iteration_is_due_or_with_a_consumer(
    ajenda: Ajenda, settings: Settings
) -> None:
    at_hand, locked, due = (ajenda.book_periodic(1, "1388", now() + hours * HOUR) for hours in (1, 1, 0))
    ajenda.put_at_hand(at_hand, now() + HOUR)
    with ajenda.locked(locked):
        ran = await taken_over(ajenda, settings)
    assert ran.stdout == "0 appointments and 0 periodic ones taken over, 3 rows left\n", ran.stderr
    assert [row.periodic_uuid for row in ajenda.consume_at_most_once()] == [due]


async def test_a_dry_run_changes_nothing(ajenda: Ajenda, settings: Settings) -> None:
    ajenda.book(now())
    ajenda.book_periodic(1, "1388", now() + HOUR)
    ran = await taken_over(ajenda, settings, "--dry-run")
    assert ran.stdout == "1 appointments and 1 periodic ones would be taken over, 0 rows left\n", ran.stderr
    assert ajenda.rows() == 2
    ran = await taken_over(ajenda, settings)
    assert ran.stdout.startswith("1 appointments and 1 periodic ones taken over"), ran.stderr


async def test_what_cannot_be_a_schedule_stays_and_is_reported(ajenda: Ajenda, settings: Settings) -> None:
    bad_cron, unknown = (
        ajenda.book_periodic(pattern_type, pattern, now() + HOUR)
        for pattern_type, pattern in ((10, "0 25 * * *"), (99, "1"))
    )
    early = ajenda.book(1)
    ajenda.book(now())
    ran = await taken_over(ajenda, settings)
    assert ran.returncode == 1
    assert "1 appointments and 0 periodic ones taken over, 3 rows left" in ran.stdout
    assert f"refused {ajenda.topic}-periodic-{bad_cron}: " in ran.stdout
    assert f"refused {ajenda.topic}-periodic-{unknown}: pattern_type 99" in ran.stdout
    assert f"refused {ajenda.topic}-{early}: " in ran.stdout
    assert ajenda.rows() == 3


def test_more_rows_can_be_refused_than_a_statement_has_parameters(ajenda: Ajenda) -> None:
    refused, periodic = ajenda.book(now() + HOUR), ajenda.book_periodic(10, "0 9 * * *", now() + HOUR)
    left = ajenda.book(now() + HOUR)
    with ajenda.engine.begin() as connection:
        topic = AjendaTopic(connection, ajenda.topic)
        topic._left.update([refused, *(uuid.uuid4() for _ in range(70_000))])
        assert [row.uuid for row in topic._at_rest(connection)] == [left]
        assert topic.periodic(connection) == [periodic]
        topic._left.add(periodic)
        assert topic.periodic(connection) == []


async def test_a_topic_that_is_not_there_is_named(ajenda: Ajenda, settings: Settings, tmp_path: Path) -> None:
    ajenda.topic += "_other"
    assert "is not a topic of Ajenda" in (await taken_over(ajenda, settings)).stderr
    ajenda.url = f"sqlite:///{tmp_path}/a.db"
    assert "is not PostgreSQL" in (await taken_over(ajenda, settings)).stderr


@pytest.mark.soak
@pytest.mark.every_case
async def test_nothing_is_taken_over_that_could_not_be_sent(ajenda: Ajenda, settings: Settings) -> None:
    ajenda.book(now() + HOUR)
    for other, status, reason in (
        (("--broker", f"kafka://127.0.0.1:{free_port()}"), 1, "cannot reach"),
        (("--commands-topic", f"none-{ajenda.topic}"), 2, "there is no topic"),
    ):
        ran = await taken_over(ajenda, settings, *other)
        assert (ran.returncode, ran.stdout) == (status, "")
        assert reason in ran.stderr
        assert "Traceback" not in ran.stderr
    assert (await taken_over(ajenda, settings)).stdout.startswith("1 appointments and 0 periodic ones taken over")


async def test_appointments_fire_at_their_times(ajenda: Ajenda, served: Application) -> None:
    await served.create_topic("mails-of-ajenda")
    due = now() + 15_000
    once, again = ajenda.book(due), ajenda.book_periodic(1, f"{500:x}", due)
    ran = await taken_over(ajenda, served.settings, "--target-topic", "mails-of-ajenda")
    assert ran.returncode == 0, ran.stderr
    expected = [(str(once), due), *((f"periodic-{again}", due + n * 500) for n in range(3))]

    async def are_fired() -> bool:
        fired = {(event.id, event.due) for event in await served.history() if event.event == "fired"}
        return fired >= {(f"{ajenda.topic}-{id}", instant) for id, instant in expected}

    await eventually(are_fired, every=0.2, what="firings at the times of Ajenda")


@pytest.mark.timeout(600)
@pytest.mark.soak
async def test_takeovers_that_are_killed_lose_and_double_nothing_while_ajenda_runs(
    ajenda: Ajenda, settings: Settings
) -> None:
    chance = random.Random(1)
    series = [ajenda.book_periodic(1, f"{2_000:x}", now(), skip_missed=False) for _ in range(20)]
    booked = [ajenda.book(now() + chance.randint(0, 8_000)) for _ in range(300)]

    def is_below(count: int) -> bool:
        return ajenda.rows(due_from=now() + HOUR // 2) < count

    async def is_drained() -> bool:
        ran = await taken_over(ajenda, settings)
        return ran.returncode == 0 and "0 rows left" in ran.stdout

    with Consumers(ajenda) as consumers:
        for _ in range(4):
            booked += [ajenda.book(now() + chance.randint(0, 4_000)) for _ in range(20)]
            booked += [ajenda.book(now() + HOUR) for _ in range(20)]
            far = ajenda.rows(due_from=now() + HOUR // 2)
            process = await asyncio.create_subprocess_exec(*COMMAND, *arguments(ajenda, settings, "--follow"))
            try:
                await eventually(partial(is_below, far), every=0.001, what="an appointment that was taken over")
                await asyncio.sleep(chance.uniform(0.0, 0.3))
            finally:
                process.kill()
                await process.wait()
        await eventually(is_drained, within=240, what="all appointments")
    delivered = [row for row in consumers.consumed if row.periodic_uuid is None]
    left = len(booked) - len(delivered) + len(series)
    found = await commands(settings, left)
    assert 0 < len(delivered) < len(booked)
    of_kafka = {f"{ajenda.topic}-{id}" for id in booked} & found.keys()
    assert sorted([*of_kafka, *(f"{ajenda.topic}-{row.uuid}" for row in delivered)]) == sorted(
        f"{ajenda.topic}-{id}" for id in booked
    )
    for id in series:
        dues = sorted(row.due_date for row in consumers.consumed if row.periodic_uuid == id)
        start = int(control(found[f"{ajenda.topic}-periodic-{id}"])["start"])
        assert not dues or dues == list(range(dues[0], start, 2_000))
