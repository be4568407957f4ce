"""The ways in, each against a real worker: what is asked for there is what happens."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from aiokafka import AIOKafkaConsumer
from click.testing import CliRunner
from support.application import Application
from support.waiting import eventually

from light_scheduler.cli import cli, row_chunks
from light_scheduler.client import FROM_CONTENT, Cron, FixedDelay, SchedulerClient, parse_firing
from light_scheduler.client.errors import CommandRefused
from light_scheduler.clock import SystemClock
from light_scheduler.model import Firing, HistoryEvent, Outcome

pytestmark = pytest.mark.integration

HOUR = 3_600_000
YEAR_2100 = 4_102_444_800_000
LARGE = bytes(range(256)) * 3_900
"""Nearly the largest payload; as base64 it is larger than a request to Kafka is by default."""


async def firings(application: Application, count: int) -> list[Firing]:
    """The first firings in the target topic."""
    async with (
        asyncio.timeout(60),
        AIOKafkaConsumer(
            application.target,
            bootstrap_servers=application.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer,
    ):
        return [parse_firing(await consumer.getone()) for _ in range(count)]


async def test_the_client_schedules_series_and_controls_them(served: Application) -> None:
    topic, now = served.target, SystemClock().now()
    async with served.client() as client:
        # Every trigger, with what bounds it: the answer tells the next due time.
        cron = await client.schedule(
            "cron", topic=topic, trigger=Cron("0 9 * * *", timezone="Europe/Prague"), start=YEAR_2100
        )
        assert (cron.outcome, cron.next_due) == (Outcome.SCHEDULED, YEAR_2100 + 8 * HOUR)
        rate = await client.schedule("rate", topic=topic, every=timedelta(hours=1), start=YEAR_2100, max_firings=3)
        assert rate.next_due == YEAR_2100
        backoff = await client.schedule("backoff", topic=topic, backoff=["2h", "4h"])
        assert backoff.next_due is not None
        assert backoff.next_due >= now + 2 * HOUR

        # Paused from the start, resumed; the version stays.
        paused = await client.schedule("paused", topic=topic, at=YEAR_2100, paused=True)
        assert paused.next_due is None
        resumed = await client.resume("paused", expected_version=1)
        assert (resumed.outcome, resumed.next_due, resumed.version) == (Outcome.RESUMED, YEAR_2100, 1)
        assert (await client.pause("paused")).outcome is Outcome.PAUSED

        # Another time rule; everything else stays.
        moved = await client.reschedule("rate", every="2h", start=datetime(2100, 1, 2, tzinfo=UTC))
        assert (moved.outcome, moved.version, moved.next_due) == (Outcome.RESCHEDULED, 2, YEAR_2100 + 24 * HOUR)
        with pytest.raises(CommandRefused, match="version 1 was expected; it is 2"):
            await client.pause("rate", expected_version=1)
        with pytest.raises(CommandRefused, match="schedule-cron"):
            await client.reschedule("rate", cron="61 * * * *")

        # The same content twice is the same schedule, and another content another.
        first = await client.schedule(FROM_CONTENT, b"x", topic=topic, at=YEAR_2100)
        again = await client.schedule(FROM_CONTENT, b"x", topic=topic, at=YEAR_2100, on_conflict="keep")
        other = await client.schedule(FROM_CONTENT, b"y", topic=topic, at=YEAR_2100)
        assert (again.outcome, again.id) == (Outcome.KEPT, first.id)
        assert other.id != first.id

        # Triggered now, though it is paused; acknowledged from the message alone, whatever its keys.
        delay = await client.schedule(
            "delay", topic=topic, trigger=FixedDelay(HOUR), key="entity", target_key="message", ack_timeout="1h"
        )
        assert delay.outcome is Outcome.SCHEDULED
        assert (await client.pause("delay", key="entity")).outcome is Outcome.PAUSED
        assert (await client.trigger("delay", key="entity")).outcome is Outcome.TRIGGERED
        (firing,) = await firings(served, 1)
        assert (firing.id, firing.key) == ("delay", b"message")
        assert (await client.complete(firing)).outcome is Outcome.COMPLETED
        assert (await client.complete(firing, succeeded=False)).outcome is Outcome.NOT_FOUND

        for id, key in (("cron", None), ("delay", "entity")):
            assert (await client.cancel(id, key=key)).outcome is Outcome.CANCELLED
            assert (await client.cancel(id, key=key)).outcome is Outcome.NOT_FOUND
        receipt = await client.cancel("rate", wait=False)
        assert receipt.id == "rate"


async def test_the_command_line_schedules_series_and_controls_them(served: Application) -> None:
    kafka = ("--app-id", served.settings.app_id, "--broker", served.settings.broker)
    worker = ("--url", served.workers[0].url)

    async def run(code: int, *arguments: str) -> str:
        result = await asyncio.to_thread(CliRunner().invoke, cli, arguments)
        assert result.exit_code == code, result.output
        return result.stdout

    async def answer(code: int, *arguments: str) -> Any:
        return json.loads(await run(code, *arguments, *kafka, "--json"))

    async def find_and_answer(code: int, *arguments: str) -> Any:
        return await answer(code, *arguments, *worker)

    # A schedule fires when preview says that it does.
    rule = ("--cron", "0 9 * * 1-5", "--timezone", "Europe/Prague", "--start", str(YEAR_2100), "--jitter", "10m")
    (due,) = json.loads(await run(0, "preview", *rule, "--id", "cron", "--count", "1", "--json"))["next"]
    target = ("--target-topic", served.target)
    scheduled = await answer(0, "schedule", "--id", "cron", *target, *rule, "--misfire", "skip", "--labels", "a=b")
    assert (scheduled["outcome"], scheduled["next_due"]) == ("scheduled", due)
    assert "cron 0 9 * * 1-5 (Europe/Prague)" in await run(0, "get", "cron", *worker)

    assert (await answer(0, "pause", "cron"))["next_due"] is None
    listed = json.loads(await run(0, "list", "--state", "paused", "--json", *worker))
    assert [(each["id"], each["due"]) for each in listed["schedules"]] == [("cron", None)]
    assert (await answer(0, "resume", "cron", "--expected-version", "1"))["next_due"] == due
    moved = await answer(0, "reschedule", "cron", "--at", str(YEAR_2100))
    assert (moved["outcome"], moved["version"], moved["next_due"]) == ("rescheduled", 2, YEAR_2100)
    assert (await answer(1, "cancel", "cron", "--expected-version", "1"))["outcome"] == "conflict"
    await run(2, "reschedule", "cron", "--cron", "x", *kafka)

    # Paused from the start, triggered, completed: a null value with a key that is no text.
    await answer(
        0, "schedule", "--id", "null", *target, "--every", "1h", "--paused", "--ack-timeout", "1h", "--payload-null",
        "--target-key-base64", "/wA=",
    )  # fmt: skip
    assert (await answer(0, "trigger", "null"))["outcome"] == "triggered"
    (firing,) = await firings(served, 1)
    assert (firing.payload, firing.key, firing.attempt) == (None, b"\xff\x00", 1)
    assert (await answer(0, "extend", firing.firing_id, "--ack-timeout", "2h"))["outcome"] == "updated"
    assert (await answer(1, "extend", f"null@{firing.due - 1}"))["outcome"] == "not_found"
    assert (await answer(0, "complete", firing.firing_id, "--failure"))["outcome"] == "completed"
    assert (await answer(1, "complete", f"null@{firing.due - 1}"))["outcome"] == "not_found"
    assert "sent default/null" in await run(0, "cancel", "null", "--no-wait", *kafka)
    assert (await answer(1, "cancel", "null"))["outcome"] == "not_found"

    # The id is enough, whatever the key is; there is never a second schedule of it.
    for number in range(4):
        keyed = ("--id", f"keyed-{number}", *target, "--at", str(YEAR_2100))
        assert (await answer(0, "schedule", *keyed, "--key", f"entity-{number}"))["outcome"] == "scheduled"
        assert (await find_and_answer(0, "schedule", *keyed))["version"] == 2
        assert (await find_and_answer(0, "pause", f"keyed-{number}"))["outcome"] == "paused"
        assert "sent" in await run(0, "resume", f"keyed-{number}", "--no-wait", *kafka, *worker)
        moved = await find_and_answer(0, "reschedule", f"keyed-{number}", "--at", str(YEAR_2100 + 1))
        assert (moved["version"], moved["next_due"]) == (3, YEAR_2100 + 1)
        assert (await find_and_answer(0, "cancel", f"keyed-{number}"))["outcome"] == "cancelled"
    left = json.loads(await run(0, "list", "--json", *worker))["schedules"]
    assert [each["id"] for each in left] == ["cron"]


SCHEDULES = "/api/v1/tenants/acme/schedules"


class Asking:
    """Requests to a worker, each of which must have the status that is expected, once it need not be asked later."""

    def __init__(self, session: aiohttp.ClientSession, application: Application) -> None:
        self._session = session
        self.application = application
        self.once = {"trigger": {"at": YEAR_2100}, "target": {"topic": application.target}}
        self.elsewhere = f"{application.workers[0].url}{SCHEDULES}"

    async def ask(self, method: str, path: str, status: int, body: Any = None, **headers: str) -> Any:
        async def answer() -> list[Any] | None:
            content = None if body is None else BytesIO(json.dumps(body).encode())
            async with self._session.request(method, path, data=content, headers=headers) as response:
                if response.status == HTTPStatus.SERVICE_UNAVAILABLE and "Retry-After" in response.headers:
                    return None  # the other worker was asked, and was too slow
                assert response.status == status, await response.text()
                return [await response.json(content_type=None)]

        (document,) = await eventually(answer, every=0.1, what=f"an answer to {method} {path}")
        return document

    async def is_gone(self, path: str) -> bool:
        async with self._session.get(path) as response:
            return response.status == 404


async def test_http_schedules_series_and_controls_them(served: Application) -> None:
    other = await served.start_worker()
    await served.shared()
    async with aiohttp.ClientSession(other.url) as session:
        asking = Asking(session, served)
        await _control_a_series(asking)
        first = await _ask_twice(asking)
        await _find_by_id_alone(asking)
        for id, status in (("a%2Fb", 200), ("a%2Fb", 404), ("keyed", 404), (first, 200)):
            await asking.ask("DELETE", f"{SCHEDULES}/{id}", status)
    assert await other.end() == 0


async def _control_a_series(asking: Asking) -> None:
    """A schedule fires when preview says that it does; any worker takes it, and finds it."""
    ask = asking.ask
    rule = {"cron": "0 9 * * 1-5", "timezone": "Europe/Prague", "start": YEAR_2100}
    command = {**asking.once, "id": "a/b", "trigger": rule, "payload": {"json": {"n": 1}}}
    (due,) = (await ask("POST", "/api/v1/preview?count=1", 200, command))["next"]
    query = urlencode({**rule, "count": 1})
    assert (await ask("GET", f"/api/v1/preview?{query}", 200))["next"] == [due]
    created = await ask("POST", SCHEDULES, 201, command)
    assert (created["outcome"], created["tenant"], created["next_due"]) == ("scheduled", "acme", due)
    path = f"{SCHEDULES}/a%2Fb"
    assert (await ask("PUT", path, 200, {**command, "key": "a/b"}))["version"] == 2
    assert (await ask("GET", path, 200))["trigger"]["cron"] == rule["cron"]

    assert (await ask("POST", f"{path}/pause", 200))["next_due"] is None
    paused = (await ask("GET", f"{SCHEDULES}?state=paused", 200))["schedules"]
    assert [each["id"] for each in paused] == ["a/b"]
    assert (await ask("POST", f"{path}/resume", 200))["next_due"] == due
    assert (await ask("POST", f"{path}/pause", 409, {"expected_version": 1}))["result"]["version"] == 2
    refused = await ask("POST", f"{path}/reschedule", 400, {"trigger": {"cron": "0 9 * * 8"}})
    assert (refused["parameter"], refused["result"]["outcome"]) == ("trigger.cron", "rejected")
    moved = await ask("POST", f"{path}/reschedule", 200, {"trigger": {"at": YEAR_2100}})
    assert (moved["version"], moved["next_due"]) == (3, YEAR_2100)


async def _ask_twice(asking: Asking) -> str:
    """The same request again gets the same answer, from this worker and from another; return the id that it has."""
    ask, once, url = asking.ask, asking.once, asking.elsewhere
    first = await ask("POST", SCHEDULES, 201, once, **{"Idempotency-Key": "k"})
    assert await ask("POST", SCHEDULES, 201, once, **{"Idempotency-Key": "k"}) == first
    assert await ask("POST", url, 201, once, **{"Idempotency-Key": "k"}) == first
    await ask("POST", url, 422, {**once, "ttl": 5}, **{"Idempotency-Key": "k"})
    now = {"target": once["target"], "id": "at-once"}
    delivered = await ask("POST", SCHEDULES, 201, now, **{"Idempotency-Key": "now"})
    (firing,) = await firings(asking.application, 1)
    assert (firing.id, firing.payload) == ("at-once", b"")
    assert await ask("POST", url, 201, now, **{"Idempotency-Key": "now"}) == delivered
    id: str = first["id"]
    return id


async def _find_by_id_alone(asking: Asking) -> None:
    """Found by its id alone though its key is another; triggered, completed, gone."""
    ask, once = asking.ask, asking.once
    await ask(
        "PUT", f"{SCHEDULES}/keyed", 201,
        {**once, "key": "entity", "ack_timeout": "1h", "payload": {"base64": b64encode(LARGE).decode()}},
    )  # fmt: skip
    moved = await ask("PUT", f"{SCHEDULES}/other", 201, {**once, "key": "entity"})
    for body in (once, {**once, "payload": None}):
        again = await ask("PUT", f"{SCHEDULES}/other", 200, body)
        assert (again["outcome"], again["partition"]) == ("updated", moved["partition"])
    assert (await ask("GET", f"{SCHEDULES}/other", 200))["payload"] is None
    await ask("DELETE", f"{SCHEDULES}/other?wait=false", 202)
    await eventually(lambda: asking.is_gone(f"{SCHEDULES}/other"))
    assert (await ask("POST", f"{SCHEDULES}/keyed/trigger", 200))["outcome"] == "triggered"
    firing = max(await firings(asking.application, 2), key=lambda delivered: delivered.id)
    assert (firing.id, firing.key, firing.payload) == ("keyed", b"entity", LARGE)
    done = {"firing_id": firing.firing_id, "attempt": 1}
    assert (await ask("POST", f"{SCHEDULES}/keyed/complete", 200, done))["outcome"] == "completed"


async def test_a_firing_that_its_target_refused_is_redriven_once_the_target_is_there(impatient: Application) -> None:
    topic, id = f"{impatient.target}-later", "redriven"
    worker = impatient.workers[0].url
    async with impatient.client(url=worker) as client:
        await client.schedule(id, b"\xff", topic=topic, headers={"h": b"1"}, target_key="k")

        async def letters() -> Any:
            return [each async for each in client.list_dead_letters(id=id)]

        (found,) = await eventually(letters, every=0.2)
        await impatient.create_topic(topic)
        arguments = ("dead-letters", "redrive", found.letter, "--url", worker, "--json")
        result = await asyncio.to_thread(CliRunner().invoke, cli, arguments)
        assert result.exit_code == 0, result.output
        async with (
            asyncio.timeout(60),
            AIOKafkaConsumer(
                topic,
                bootstrap_servers=impatient.bootstrap_servers,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
            ) as consumer,
        ):
            record = await consumer.getone()
        assert (record.partition, record.offset) == (json.loads(result.stdout)["partition"], 0)
        firing = parse_firing(record)
        assert (firing.id, firing.firing_id, firing.key, firing.payload) == (id, found.firing_id, b"k", b"\xff")
        assert firing.headers == [("h", b"1")]

        async def whole_history() -> list[HistoryEvent] | None:
            """Return it once the redrive is in it: its firing may be read a moment before."""
            found = [event async for event in client.history_of(id)]
            return found if len(found) >= 3 else None

        told = await eventually(whole_history, every=0.2, what=f"the history of {id}")
        assert [event.event.value for event in told] == ["fired", "dead_lettered", "scheduled"]
        assert told[0].reason == f"redriven from dead letter {found.letter}"
        assert (firing.version, firing.sequence, firing.attempt) == (told[1].version, told[1].sequence, told[1].attempt)


class Loading:
    """Files in a folder, and the command that schedules their rows."""

    def __init__(self, application: Application, folder: Path) -> None:
        self.application = application
        self.folder = folder
        self.due = {"trigger": {"at": YEAR_2100}, "target": {"topic": application.target}}

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.write_text(text, encoding="utf-8")
        return file

    async def load(self, code: int, file: Path, *more: str) -> Any:
        settings = self.application.settings
        kafka = ("--app-id", settings.app_id, "--broker", settings.broker, "--json")
        arguments = ("schedule", "--from-file", str(file), *kafka, *more)
        result = await asyncio.to_thread(CliRunner().invoke, cli, arguments)
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return json.loads(result.stdout) if code < 2 else result.stderr

    def refused(self, name: str) -> list[Any]:
        text = (self.folder / f"{name}.refused.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


async def test_a_file_is_scheduled_once_whatever_is_refused_and_whenever_it_goes_on(
    served: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_chunks, "CHUNK", 2)
    loading = Loading(served, tmp_path)
    async with served.client(url=served.workers[0].url) as client:
        await _schedule_json_lines(loading, client)
        table = await _schedule_a_table(loading, client)
    async with served.client(tenant="acme", url=served.workers[0].url) as client:
        assert await client.get("c-4") is not None
    assert "'target' is not known" in await loading.load(2, loading.write("wrong.csv", "id,target\n"))
    assert "--from-file cannot be combined with options of one schedule" in await loading.load(2, table, "--at", "1")


async def _schedule_json_lines(loading: Loading, client: SchedulerClient) -> None:
    """What was sent is not sent again; what was added is."""
    rows: list[Any] = [{"id": f"f-{number}", **loading.due} for number in range(5)]
    rows[1] |= {"trigger": {"cron": "61 * * * *"}}
    rows[2] |= {"expected_version": 7}
    del rows[4]["id"]

    def write(rows: list[Any]) -> Path:
        return loading.write("rows.jsonl", "\n".join(map(json.dumps, rows)) + "\nnonsense\n")

    async def pending() -> dict[str, int]:
        return {each.id: each.version async for each in client.list()}

    file = write(rows)
    assert await loading.load(1, file) == {"lines": 6, "sent": 3, "refused": 3}
    first = await pending()
    assert len(first) == 3
    assert {"f-0": 1, "f-3": 1}.items() <= first.items()
    refused = loading.refused("rows.jsonl")
    assert [(each["line"], each["field"]) for each in refused] == [(2, "trigger.cron"), (3, None), (6, "body")]
    assert json.loads(refused[1]["row"]) == rows[2]

    with file.open("a", encoding="utf-8") as more:
        more.write(json.dumps(rows[0] | {"id": "added"}))
    assert await loading.load(1, file) == {"lines": 7, "sent": 4, "refused": 3}
    assert await pending() == {**first, "added": 1}
    assert "has changed since its first rows were sent" in await loading.load(2, write(rows[1:]))


async def _schedule_a_table(loading: Loading, client: SchedulerClient) -> Path:
    """Return the file: a row may go over lines and name a tenant."""
    target = loading.application.target
    table = loading.write(
        "rows.csv",
        f'id,at,target-topic,payload,header.kind,tenant\nc-1,{YEAR_2100},{target},"two\nlines",a,\n'
        f"c-2,soon,{target},,,\nc-3,{YEAR_2100},{target}\n"
        f"c-4,{YEAR_2100},{target},,,acme\nc-5,{YEAR_2100},{target},,,no tenant\n",
    )
    assert await loading.load(1, table) == {"lines": 7, "sent": 2, "refused": 3}
    refused = [(each["line"], each["field"]) for each in loading.refused("rows.csv")]
    assert refused == [(4, "at"), (5, None), (7, "tenant")]
    shown = await client.get("c-1")
    assert shown is not None
    assert (shown.payload, shown.headers) == (b"two\nlines", [("kind", b"a")])
    assert await client.get("c-4") is None
    return table
