"""The scheduler in memory: a client's calls, a clock that is moved, and what was delivered."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from croniter import croniter

from light_scheduler.client import CommandRefused
from light_scheduler.client.questions import Question
from light_scheduler.client.views import Page
from light_scheduler.errors import BrokerError, ClientError, InvalidCommand
from light_scheduler.model import EventType, Outcome, Requester
from light_scheduler.settings import Settings
from light_scheduler.settings.values import CommandsTopic
from light_scheduler.testing import InMemoryScheduler
from light_scheduler.testing.worker import answer_to
from light_scheduler.wire import change_record

START = datetime(2030, 1, 1, tzinfo=UTC)
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
PARTS = 120
DECADE = timedelta(days=3_653)
ROUNDS = 5
"""How often a decade is timed at most, until it was soon enough."""


@pytest.fixture
def scheduler() -> InMemoryScheduler:
    return InMemoryScheduler(now=START)


async def test_a_message_is_delivered_at_its_time_and_not_before(scheduler: InMemoryScheduler) -> None:
    result = await scheduler.schedule("order-1", b"pay!", topic="reminders", after="15m", headers={"kind": "a"})
    assert result.outcome is Outcome.SCHEDULED
    await scheduler.advance(minutes=14, seconds=59.999)
    assert scheduler.delivered == []
    await scheduler.advance(milliseconds=1)
    (record,) = scheduler.delivered
    assert (record.topic, record.key, record.value) == ("reminders", b"order-1", b"pay!")
    assert ("kind", b"a") in record.headers
    assert ("schedule-firing-id", b"order-1@1893456900000") in record.headers
    assert record.timestamp == 1_893_456_900_000
    assert scheduler.now == START + timedelta(minutes=15)


@pytest.fixture
def alone_in_memory() -> Iterator[None]:
    """Have the garbage collector pass over what other tests have left: that takes longer than the test."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


async def parts_of_cron(scheduler: InMemoryScheduler) -> tuple[list[float], list[float]]:
    """Simulate a decade; return the processor time (s) of each part, and of naming its times with croniter alone."""
    await scheduler.schedule("daily", topic="reports", cron="0 9 * * 1-5", timezone="Europe/Prague")
    times = croniter("0 9 * * 1-5", START.astimezone(ZoneInfo("Europe/Prague")))
    ours, naming = [], []
    for _ in range(PARTS):
        came, began = len(scheduler.delivered), time.process_time()
        await scheduler.advance(DECADE / PARTS)
        between = time.process_time()
        for _ in range(came, len(scheduler.delivered)):
            times.get_next(datetime)
        naming.append(time.process_time() - between)
        ours.append(between - began)
    assert len(scheduler.delivered) == 2_609
    return ours, naming


@pytest.mark.usefixtures("alone_in_memory")
async def test_a_decade_of_cron_takes_less_than_a_second() -> None:
    """A second of a processor that does nothing else: such a one names the times with croniter in 0.18 s.

    The two are measured by turns. What else the machine does makes either longer, never shorter: of each part, the
    shortest time of some rounds counts.
    """
    ours, naming = [inf] * PARTS, [inf] * PARTS
    for _ in range(ROUNDS):
        for least, took in zip((ours, naming), await parts_of_cron(InMemoryScheduler(now=START)), strict=True):
            least[:] = map(min, least, took)
        if sum(ours) / sum(naming) < 1 / 0.18:
            return
    pytest.fail(f"{sum(ours):.2f} s, beside {sum(naming):.3f} s for the names")


async def test_every_message_of_a_series_has_its_own_time(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("series", topic="t", every="1m", max_firings=3)
    await scheduler.advance(hours=1)
    assert [(firing.due, firing.fired_at - firing.due) for firing in scheduler.firings] == [
        (1_893_456_060_000 + number * 60_000, 0) for number in range(3)
    ]


async def test_an_outage_is_answered_by_the_misfire_policy(scheduler: InMemoryScheduler) -> None:
    for policy in ("all", "skip", "coalesce"):
        await scheduler.schedule(policy, topic="t", every="10m", misfire=policy, misfire_grace="1m")
    await scheduler.outage(minutes=35)
    assert sorted(firing.id for firing in scheduler.firings) == ["all", "all", "all", "coalesce"]


async def test_a_refusal_raises_as_the_client_does(scheduler: InMemoryScheduler) -> None:
    with pytest.raises(InvalidCommand, match="schedule-cron"):
        await scheduler.schedule("x", topic="t", cron="0 9 * * *", every="1m")
    with pytest.raises(CommandRefused) as refused:
        await scheduler.schedule("x", topic="t", cron="61 * * * *")
    assert refused.value.result.field == "schedule-cron"
    assert [letter.field for letter in scheduler.dead_letters] == ["schedule-cron"]


async def test_a_schedule_without_a_target_is_refused_with_what_to_do(scheduler: InMemoryScheduler) -> None:
    with pytest.raises(CommandRefused, match="give tenant default a default target") as refused:
        await scheduler.schedule("x", after="1h")
    assert refused.value.result.field == "schedule-target-topic"


@pytest.mark.parametrize("wait", [False, True])
async def test_the_first_wrong_request_of_many_is_named_by_its_number(scheduler: InMemoryScheduler, wait: bool) -> None:
    requests = [{"id": f"order-{number}", "topic": "t", "after": "1h"} for number in range(5_002)]
    requests[5_000]["after"] = "soon"
    with pytest.raises(InvalidCommand, match=r"^schedule-after: 'soon' is not .* \(request 5001\)$"):
        await scheduler.schedule_many(requests, wait=wait)  # type: ignore[call-overload]


async def test_a_redriven_command_is_told_of_as_a_change(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("x", topic="t", at="2020-01-01T00:00:00Z", on_past="reject", wait=False)
    [letter] = [each async for each in scheduler.list_dead_letters()]
    await scheduler.redrive(letter.letter)
    [change] = [event for event in scheduler.history if event.event is EventType.CHANGED]
    place = f"to {letter.source.topic}, partition {letter.source.partition}"
    assert change.reason == f"dead letter {letter.letter} redriven: command for x, {place}"
    assert len(scheduler.dead_letters) == 2


async def test_a_firing_is_not_redriven_to_a_topic_that_is_not_there() -> None:
    scheduler = InMemoryScheduler(now=START, topics={"here": 1}, settings=Settings(delivery_retries=0))
    await scheduler.schedule("a", topic="there", after=0)
    await scheduler.schedule("b", topic="here", after=0, target_partition=1)
    letters = {each.id: each.letter async for each in scheduler.list_dead_letters()}
    with pytest.raises(ClientError, match="topic there does not exist"):
        await scheduler.redrive(letters["a"])
    with pytest.raises(InvalidCommand, match=r"target\.partition: topic here has no partition 1"):
        await scheduler.redrive(letters["b"])
    assert scheduler.delivered == []


async def test_a_dead_letter_that_was_too_large_for_its_topic_is_not_redriven(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("x", b"x" * 2_000_000, topic="t", wait=False)
    [letter] = [each async for each in scheduler.list_dead_letters()]
    assert letter.dropped
    with pytest.raises(ClientError, match=f"^Dead letter {letter.letter} was too large for its topic"):
        await scheduler.redrive(letter.letter)


async def test_bulk_commands_reach_every_partition(scheduler: InMemoryScheduler) -> None:
    requests = [{"id": f"order-{number}", "topic": "t", "after": "1h"} for number in range(40)]
    results = await scheduler.schedule_many(requests, wait=True)  # type: ignore[call-overload]
    assert {result.partition for result in results} == {0, 1, 2, 3}
    assert (await scheduler.cancel_many(id_prefix="order-")).count == 40
    await scheduler.advance(hours=2)
    assert scheduler.delivered == []


async def test_the_answer_to_a_replacement_says_what_it_gives_up_besides_that_its_target_is_missing() -> None:
    scheduler = InMemoryScheduler(now=START, topics={"here": 1})
    await scheduler.schedule("a", topic="here", ack_timeout="1h")
    await scheduler.advance(seconds=1)
    due = scheduler.history[-1].due
    result = await scheduler.schedule("a", topic="there", after="1s")
    given_up = f"replaced: gives up what was delivered and not completed, which was due at {due}"
    assert result.reason == f"topic there does not exist: nothing can be delivered there; {given_up}"
    assert (scheduler.history[-1].event, scheduler.history[-1].reason) == (EventType.UPDATED, given_up)


async def test_only_the_topics_that_are_named_exist() -> None:
    scheduler = InMemoryScheduler(now=START, topics={"here": 1}, settings=Settings(delivery_retries=0))
    result = await scheduler.schedule("a", topic="there", after="1s")
    assert result.reason == "topic there does not exist: nothing can be delivered there"
    await scheduler.schedule("b", topic="here", after="1s", target_partition=1)
    await scheduler.advance(seconds=1)
    assert sorted(letter.reason for letter in scheduler.dead_letters) == [
        "topic here has no partition 1; it has 1",
        "topic there does not exist",
    ]


async def test_a_consumer_completes_what_it_receives(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("job", topic="t", after="1m", ack_timeout="10m", max_attempts=2)
    await scheduler.advance(minutes=11)
    assert [firing.attempt for firing in scheduler.firings] == [1, 2]
    assert (await scheduler.complete(scheduler.firings[1])).outcome is Outcome.COMPLETED
    await scheduler.advance(hours=1)
    assert len(scheduler.delivered) == 2
    assert [event.event for event in scheduler.history][-1] is EventType.COMPLETED


async def test_a_firing_of_another_application_cannot_be_completed(scheduler: InMemoryScheduler) -> None:
    elsewhere = InMemoryScheduler(now=START, settings=Settings(app_id="other"))
    await elsewhere.schedule("job", topic="t", ack_timeout="1m", max_attempts=2)
    with pytest.raises(BrokerError, match="other-commands"):
        await scheduler.complete(elsewhere.firings[0])


async def test_an_event_of_a_type_that_only_newer_versions_know_is_passed_over_without_a_word(
    scheduler: InMemoryScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    memory = scheduler._scheduler
    key, value = change_record("shop", "tenant shop: active -> paused", Requester("ops", ""), 1)
    newer = msgspec.json.encode({**msgspec.json.decode(value), "event": "teleported"})
    for each in (newer, b"no event", value):
        memory.broker.append((memory.names.history, 0), key, each, [], 1)
    async with aclosing(scheduler.watch(from_beginning=True)) as events:
        event = await anext(events)
    assert (event.event, event.tenant, event.id) == (EventType.CHANGED, "shop", None)
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert "-history-0 at offset 1: not a history event" in warning


async def test_what_is_watched_comes_while_the_clock_moves(scheduler: InMemoryScheduler) -> None:
    seen: list[EventType] = []

    async def watch() -> None:
        async for event in scheduler.watch():
            seen.append(event.event)
            if event.event is EventType.FIRED:
                await scheduler.schedule("reaction", topic="t", after="1m")
                return

    await scheduler.schedule("before", topic="t", after="1h")
    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await scheduler.schedule("first", topic="t", after="5m")
    await scheduler.advance(minutes=10)
    await watching
    assert seen == [EventType.SCHEDULED, EventType.FIRED]
    assert [(firing.id, firing.due) for firing in scheduler.firings] == [
        ("first", 1_893_456_300_000),
        ("reaction", 1_893_456_360_000),
    ]


async def test_a_schedule_may_aim_at_the_results_topic(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", b"no result", topic="light-scheduler-results")
    assert (await scheduler.cancel("a")).outcome is Outcome.NOT_FOUND
    assert [record.value for record in scheduler.delivered] == [b"no result"]


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ({"max_firings": 2}, "it has had its maximum number of firings, 2"),
        ({"end": START + timedelta(hours=2)}, "no firing is left before its end"),
        ({"max_firings": 3, "end": START + timedelta(hours=2)}, "no firing is left before its end"),
    ],
)
async def test_why_a_series_is_finished_is_known(
    scheduler: InMemoryScheduler, bound: dict[str, Any], reason: str
) -> None:
    await scheduler.schedule("hourly", topic="out", every="1h", **bound)
    await scheduler.advance(hours=3)
    assert [event.reason for event in scheduler.history if event.event is EventType.FINISHED] == [reason]
    told = await scheduler.why("hourly")
    assert (told.state, told.events[-1].text) == ("finished", f"The series is finished: {reason}.")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"backoff": "1m,2m"}, "it has had its last attempt, number 2"),
        ({"cron": "0 0 1,2 1 1 ? 2030", "cron_dialect": "quartz"}, "its cron expression has no later time"),
    ],
)
async def test_a_series_that_has_no_more_times_says_so(
    scheduler: InMemoryScheduler, rule: dict[str, Any], reason: str
) -> None:
    await scheduler.schedule("series", topic="out", **rule)
    await scheduler.advance(days=365 * 10)
    assert [event.reason for event in scheduler.history if event.event is EventType.FINISHED] == [reason]


async def test_why_a_series_ends_with_a_completion_is_known(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("runs", topic="out", every="1h", mode="fixed-delay", max_firings=1)
    await scheduler.advance(hours=1)
    await scheduler.complete(scheduler.firings[0])
    assert (await scheduler.why("runs")).events[-1].text == (
        "The series is finished: it has had its maximum number of firings, 1."
    )


async def test_why_a_backoff_series_ends_is_told_by_its_completion(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("calls", topic="out", backoff="1m,2m", end=START + timedelta(hours=2))
    await scheduler.advance(minutes=1)
    await scheduler.complete(scheduler.firings[0])
    told = await scheduler.why("calls")
    assert [event.text for event in told.events][2:] == [
        "Firing 1, attempt 1, was reported as completed.",
        "The series is finished: it was completed.",
    ]


async def test_time_does_not_go_back(scheduler: InMemoryScheduler) -> None:
    with pytest.raises(ValueError, match="before"):
        await scheduler.advance_to(START - timedelta(seconds=1))
    with pytest.raises(ValueError, match="before"):
        await scheduler.outage(seconds=-1)


async def test_the_plugin_has_one_for_each_test(in_memory_scheduler: InMemoryScheduler) -> None:
    await in_memory_scheduler.send_later("key", b"value", "t", timedelta(seconds=1))
    await in_memory_scheduler.advance(seconds=1)
    assert [record.value for record in in_memory_scheduler.delivered] == [b"value"]


def test_the_examples_of_the_documentation_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "test_examples.py").write_text("\n\n".join(block for block in blocks if "test_" in block))
    options = ["-p", "no:cacheprovider", "-c", "/dev/null", "-o", "asyncio_mode=auto", "-W", "ignore"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)], capture_output=True, text=True, check=False
    )
    count = sum(len(re.findall(r"^(?:async )?def test_", block, re.MULTILINE)) for block in blocks)
    assert f" {count} passed" in ran.stdout, ran.stdout


async def test_a_full_partition_refuses_new_schedules_as_a_worker_does() -> None:
    scheduler = InMemoryScheduler(now=START, settings=Settings(partitions=1, max_pending_per_partition=1))
    await scheduler.schedule("a", topic="t", after="1h")
    with pytest.raises(CommandRefused) as refused:
        await scheduler.schedule("b", topic="t", after="1h")
    assert refused.value.result.field == "quota.max_pending_per_partition"
    await scheduler.schedule("a", topic="t", after="2h")
    await scheduler.advance(hours=2)
    await scheduler.schedule("b", topic="t", after="1h")


async def test_a_list_has_the_total_that_a_worker_gives(scheduler: InMemoryScheduler) -> None:
    for number in range(5):
        await scheduler.schedule(f"id-{number}", topic="mail" if number % 2 else "sms", after="1h")
    assert _totals(scheduler, {"limit": "2"}) == [5, 5, 5]
    assert _totals(scheduler, {"limit": "1", "target_topic": "mail"}) == [2, 2]
    assert _totals(scheduler, {"limit": "2", "id_contains": "id"}) == [None, None, None]
    assert _totals(scheduler, {"limit": "5", "id_contains": "id"}) == [5]


def _totals(scheduler: InMemoryScheduler, parameters: dict[str, str]) -> list[int | None]:
    totals = []
    while True:
        question = Question("list", Page, "default", parameters=parameters)
        page = json.loads(answer_to(question, scheduler._scheduler) or b"")
        totals.append(page["total"])
        if page["next_cursor"] is None:
            return totals
        parameters["cursor"] = page["next_cursor"]


@pytest.mark.parametrize(
    ("topics", "of_commands"),
    [
        ((CommandsTopic("legacy", "etf1"),), "light-scheduler-commands"),
        ((CommandsTopic("legacy", "etf1"), CommandsTopic("ours", "native")), "ours"),
    ],
)
async def test_commands_are_native_whatever_else_the_workers_read(
    topics: tuple[CommandsTopic, ...], of_commands: str
) -> None:
    scheduler = InMemoryScheduler(settings=Settings(commands_topics=topics))
    assert scheduler.commands_topic == of_commands
    assert (await scheduler.schedule("a", topic="t", after="1h")).outcome is Outcome.SCHEDULED
