"""What history tells of the decisions around an outage of three hours: real workers, one before it and one after it."""

from __future__ import annotations

import pytest
from support.application import Application
from support.clocks import HOUR, MINUTE, end_of_minute
from support.reading import Record, header, read_until

from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.wire import decode_history

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

OUTAGE = 3 * HOUR + 10 * MINUTE
LOOKBACK_MINUTES = 100

# By hand: what happened to each, as event, due in minutes after the start, sequence and attempt; and a count if there
# is one. The first worker lives for some seconds from minute 0 on; the second one begins ten minutes after the third
# hour and looks back to the second.
EXPECTED = {
    "coalesced": ["scheduled 0 1.1", "fired 0 1.1", "skipped 60 2.1 x2", "fired 180 2.1"],
    "left out": ["scheduled 0 1.1", "fired 0 1.1", "skipped 60 2.1 x3"],
    "all": ["scheduled 0 1.1", "fired 0 1.1", "missed 60 2.1", "fired 120 3.1", "fired 180 4.1", "finished 180 4.1"],
    "worth an hour": ["scheduled 60 1.1", "expired 60 1.1"],
    "too old": ["scheduled 60 1.1", "missed 60 1.1"],
    "recent": ["scheduled 120 1.1", "fired 120 1.1"],
    "refused": ["scheduled 180 1.1", "retried 180 1.1", "dead_lettered 180 1.1"],
    "ignored": ["scheduled 150 1.1", "fired 150 1.1", "fired 150 1.2", "dead_lettered 150 1.2"],
    "acknowledged": ["scheduled 170 1.1", "fired 170 1.1", "completed 170 1.1"],
    "held back": ["scheduled 150 1.1", "paused 150 1.1", "resumed 150 1.1", "fired 150 1.1"],
    "called off": ["scheduled 150 1.1", "updated 160 1.1", "cancelled 160 1.1"],
    "asked for": ["scheduled 600 1.1", "updated - 1.1", "fired - 1.1"],
    "wrong": ["rejected"],
}
DEAD_LETTERS = {
    "all": "missed",
    "too old": "missed",
    "refused": "refused",
    "ignored": "unacknowledged",
    "wrong": "rejected",
}
WHY = {
    "coalesced": ("pending", "2 firings were skipped"),
    "left out": ("pending", "not delivered because of misfire policy skip"),
    "all": ("finished", "The series is finished"),
    "worth an hour": ("expired", "its time to live was 3600000 ms"),
    "too old": ("missed", "before the lookback of 100 minutes"),
    "recent": ("delivered", "late: the history does not say why"),
    "refused": ("dead_lettered", "The target refused firing 1: "),
    "ignored": ("dead_lettered", "attempt 1 was not completed"),
    "acknowledged": ("completed", "was reported as completed"),
    "held back": ("delivered", "late: it was paused until "),
    "called off": ("cancelled", "Updated to version 2"),
    "asked for": ("delivered", "Triggered: fires at once"),
    "wrong": ("rejected", "A command was rejected, and changed nothing: "),
    "nobody": ("unknown", "It is unknown"),
}
BEFORE_OUTAGE = 19
"""Lines of them that the first worker tells."""

WITH_A_REASON = {"skipped", "expired", "missed", "retried", "dead_lettered", "rejected"}


async def test_history_tells_every_decision(application: Application) -> None:
    clock = application.drive_clock(behind=OUTAGE + 2 * MINUTE)
    first = await application.start_worker()
    start = clock.now() + 2_000
    topics, target = application.settings.topics, {"target_topic": application.target}
    acknowledged = {"ack_timeout": 1_000, "max_attempts": 2, **target}

    def at(minutes: int) -> int:
        return start + minutes * MINUTE

    async with application.sender() as send:
        await send("coalesced", every="1h", start=start, **target)
        await send("left out", every="1h", start=start, misfire="skip", **target)
        await send("all", every="1h", start=start, misfire="all", max_firings=4, **target)
        await send("worth an hour", at=at(60), ttl="1h", **target)
        await send("too old", at=at(60), **target)
        await send("recent", at=at(120), **target)
        await send("refused", at=at(180), target_topic=f"{application.target}-missing")
        await send("ignored", at=at(150), **acknowledged)
        await send("acknowledged", at=at(170), **{**acknowledged, "ack_timeout": "1m"})
        await send("held back", at=at(150), **target)
        await send("held back", None, command="pause")
        await send("called off", at=at(150), **target)
        await send("called off", at=at(160), **target)
        await send("called off", None, command="cancel")
        await send("asked for", at=at(600), **target)
        await send("wrong", at="soon", **target)
        await read_until(application.bootstrap_servers, [topics.history], lambda records: len(records) >= BEFORE_OUTAGE)
        first.kill()

        clock.advance(OUTAGE)
        await application.start_worker(lookback_minutes=str(LOOKBACK_MINUTES))
        await send("held back", None, command="resume")
        await send("asked for", None, command="trigger")
        await read_until(
            application.bootstrap_servers,
            [application.target],
            lambda records: any(header(record, "schedule-id") == "acknowledged" for record in records),
        )
        await send("acknowledged", None, command="complete", firing_id=f"acknowledged@{at(170)}", attempt=1)
    await read_until(
        application.bootstrap_servers,
        [topics.history],
        lambda records: told(records, "retried") >= 1 and told(records, "completed") >= 1,
    )
    clock.advance_to(end_of_minute(clock.now()))
    records = await read_until(
        application.bootstrap_servers,
        [topics.history],
        lambda records: len(records) >= sum(map(len, EXPECTED.values())),
        timeout=90,
    )
    letters = await read_until(
        application.bootstrap_servers, [topics.dead_letters], lambda records: len(records) >= len(DEAD_LETTERS)
    )

    check_events([decode_history(record.value) for record in records], start)
    await check_why(application)
    assert {header(letter, "dead-letter-id"): header(letter, "dead-letter-cause") for letter in letters} == DEAD_LETTERS


def check_events(events: list[HistoryEvent], start: int) -> None:
    """They are what is expected, with reasons where there are any, and none before it is due."""
    assert {id: [line(event, start) for event in events if event.id == id] for id in EXPECTED} == EXPECTED
    assert len(events) == sum(map(len, EXPECTED.values()))
    assert all(event.reason for event in events if event.event.value in WITH_A_REASON)
    assert all(event.at >= (event.due or 0) for event in events if event.event is EventType.FIRED)
    asked_for = [event.due for event in events if event.id == "asked for" and event.event is not EventType.SCHEDULED]
    assert asked_for == [asked_for[0]] * 2, "the firing that was asked for, at the instant of the command"
    late = [event for event in events if event.at >= start + OUTAGE - MINUTE]
    assert {event.id for event in late} == EXPECTED.keys() - {"called off", "wrong"}


async def check_why(application: Application) -> None:
    """It says how each stands, and no reason that the history does not have."""
    async with application.client(url=application.workers[-1].url) as client:
        for id, (state, text) in WHY.items():
            said = await client.why(id)
            assert (said.state, said.complete) == (state, True), said
            assert (said.next_due is not None) == (state == "pending"), said
            assert text in "\n".join((*(event.text for event in said.events), said.summary)), said
            assert [event.event for event in said.events] == [line.split()[0] for line in EXPECTED.get(id, [])]


def told(records: list[Record], event: str) -> int:
    return sum(decode_history(record.value).event.value == event for record in records)


def line(event: HistoryEvent, start: int) -> str:
    parts = [event.event.value]
    if event.due is not None:
        minutes, rest = divmod(event.due - start, MINUTE)
        parts += [str(minutes) if rest == 0 else "-", f"{event.sequence}.{event.attempt}"]
    if isinstance(event.count, int):
        parts.append(f"x{event.count}")
    return " ".join(parts)
