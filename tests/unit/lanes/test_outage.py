"""Three hours without a worker, through real cycles, RocksDB and the changelog: a table by hand of what comes of it.

The worker is gone from just before 12:00 and back at 15:00:20. Every line below is one line of history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from aiokafka.structs import ConsumerRecord
from support.partition import HOUR, TO_REMINDERS, Partition, command
from support.producing import FakeProducer

from light_scheduler.engine import FiringRules
from light_scheduler.model import DeadLetterCause, EventType, Headers, HistoryEvent
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire import parse_firing
from light_scheduler.wire.state import PROGRESS_KIND, identity

MIDNIGHT = 1_767_225_600_000
MINUTE = 60_000
LARGE = bytes(range(256)) * 16
"""A payload that is stored apart from its schedule's progress."""


def clock(text: str) -> int:
    """Return an instant of the day: HH:MM or HH:MM:SS."""
    hour, minute, second = (*map(int, text.split(":")), 0)[:3]
    return MIDNIGHT + hour * HOUR + minute * MINUTE + second * 1_000


def shown(instant: int) -> str:
    of_day = (instant - MIDNIGHT) // 1_000
    text = f"{of_day // 3_600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}"
    return text.removesuffix(":00")


START, GONE, BACK, END = clock("09:30"), clock("12:00"), clock("15:00:20"), clock("16:00")


def late(due: str, event: str = "fired") -> list[str]:
    return [f"{due} {event} at 15:00:20"]


def on_time(due: str) -> list[str]:
    return [f"{due} fired at {due}"]


def skipped(count: int, first: str) -> list[str]:
    return [f"{first} skipped x{count} at 15:00:20"]


def minutes(first: str, last: str) -> Iterator[str]:
    return map(shown, range(clock(first), clock(last) + 1, MINUTE))


def each(lines: Iterator[list[str]]) -> list[str]:
    return [line for some in lines for line in some]


HOURLY: Headers = [("schedule-cron", b"0 * * * *")]
HOURLY_RATE: Headers = [("schedule-every", b"1h"), ("schedule-start", b"%d" % clock("09:00"))]
MINUTELY: Headers = [("schedule-cron", b"* * * * *")]
MINUTELY_RATE: Headers = [("schedule-every", b"60s"), ("schedule-start", b"%d" % clock("09:00"))]


def at(time: str) -> Headers:
    return [("schedule-at", b"%d" % clock(time))]


def misfire(policy: str, grace: str | None = None) -> Headers:
    headers: Headers = [("schedule-misfire", policy.encode())]
    return headers if grace is None else [*headers, ("schedule-misfire-grace", grace.encode())]


def until(time: str) -> Headers:
    return [("schedule-end", b"%d" % clock(time))]


class Case(NamedTuple):
    """A schedule, when it was sent, and its history from noon to 16:00."""

    headers: Headers
    expected: list[str]
    sent: str = "09:30"


LIVE_HOUR = [*late("15:00"), *on_time("16:00")]
LIVE_MINUTES = each(map(on_time, minutes("15:01", "16:00")))
REJECTED = ["rejected at 15:00:20"]

WHATEVER_THE_LOOKBACK = {
    # The firing of 15:00 is 20 s late: within the grace of 30 s, unless there is another one.
    "hourly, coalesced": Case(HOURLY, [*skipped(3, "12:00"), *LIVE_HOUR]),
    "hourly, coalesced whatever is late": Case(HOURLY + misfire("coalesce", "10s"), [*skipped(3, "12:00"), *LIVE_HOUR]),
    "hourly by rate, coalesced": Case(HOURLY_RATE, [*skipped(3, "12:00"), *LIVE_HOUR]),
    "hourly, skipped": Case(HOURLY + misfire("skip"), [*skipped(3, "12:00"), *LIVE_HOUR]),
    "hourly, skipped with a short grace": Case(
        HOURLY + misfire("skip", "10s"), [*skipped(4, "12:00"), *on_time("16:00")]
    ),
    "hourly by rate, skipped with a short grace": Case(
        HOURLY_RATE + misfire("skip", "10s"), [*skipped(4, "12:00"), *on_time("16:00")]
    ),
    "hourly, skipped with a grace of two hours": Case(
        HOURLY + misfire("skip", "2h"), [*skipped(2, "12:00"), *late("14:00"), *LIVE_HOUR]
    ),
    "hourly until 14:30, skipped": Case(
        HOURLY + misfire("skip") + until("14:30"), [*skipped(3, "12:00"), *late("12:00", "finished")]
    ),
    "hourly until 14:30, coalesced": Case(
        HOURLY + until("14:30"), [*skipped(2, "12:00"), *late("14:00"), *late("14:00", "finished")]
    ),
    "minutely, coalesced": Case(MINUTELY, [*skipped(180, "12:00"), *late("15:00"), *LIVE_MINUTES]),
    "minutely by rate, coalesced": Case(MINUTELY_RATE, [*skipped(180, "12:00"), *late("15:00"), *LIVE_MINUTES]),
    "minutely, skipped": Case(MINUTELY + misfire("skip"), [*skipped(180, "12:00"), *late("15:00"), *LIVE_MINUTES]),
    "minutely by rate, skipped with a short grace": Case(
        MINUTELY_RATE + misfire("skip", "10s"), [*skipped(181, "12:00"), *LIVE_MINUTES]
    ),
    "once at 14:00": Case(at("14:00"), late("14:00")),
    "once at 14:00, skipped if there were others": Case(at("14:00") + misfire("skip"), late("14:00")),
    "once at 13:00, worth an hour": Case([*at("13:00"), ("schedule-ttl", b"1h")], late("13:00", "expired")),
    "once at 15:30": Case(at("15:30"), on_time("15:30")),
    "hourly, sent at 12:30": Case(HOURLY, ["13:00 scheduled at 15:00:20", *skipped(2, "13:00"), *LIVE_HOUR], "12:30"),
    "once at 14:00, sent in time": Case(
        [*at("14:00"), ("schedule-on-past", b"reject")], ["14:00 scheduled at 15:00:20", *late("14:00")], "13:59"
    ),
    "once at 14:00, sent too late": Case([*at("14:00"), ("schedule-on-past", b"reject")], REJECTED, "14:01"),
    "once at 14:00, sent within its grace": Case(
        [*at("14:00"), ("schedule-on-past", b"5m")], ["14:00 scheduled at 15:00:20", *late("14:00")], "14:05"
    ),
    "once at 14:00, sent after its grace": Case([*at("14:00"), ("schedule-on-past", b"5m")], REJECTED, "14:06"),
}

EVERYTHING_FIRES = {
    "hourly, all": Case(HOURLY + misfire("all"), [*late("12:00"), *late("13:00"), *late("14:00"), *LIVE_HOUR]),
    "hourly by rate, all": Case(
        HOURLY_RATE + misfire("all"), [*late("12:00"), *late("13:00"), *late("14:00"), *LIVE_HOUR]
    ),
    "hourly, with a grace of four hours": Case(
        HOURLY + misfire("skip", "4h"), [*late("12:00"), *late("13:00"), *late("14:00"), *LIVE_HOUR]
    ),
    "minutely, all": Case(MINUTELY + misfire("all"), [*each(map(late, minutes("12:00", "15:00"))), *LIVE_MINUTES]),
    "minutely by rate, all": Case(
        MINUTELY_RATE + misfire("all"), [*each(map(late, minutes("12:00", "15:00"))), *LIVE_MINUTES]
    ),
    "once at 13:00": Case(at("13:00"), late("13:00")),
    "once at 13:15, within half an hour": Case([*at("13:15"), ("schedule-window", b"30m")], late("13:15")),
    "hourly until 13:15, coalesced": Case(
        HOURLY + until("13:15"), [*skipped(1, "12:00"), *late("13:00"), *late("13:00", "finished")]
    ),
}


def missed(due: str) -> list[str]:
    return late(due, "missed")


# At 15:00:20 the minutes from 13:30 on are looked at.
OF_90_MINUTES = {
    "hourly, all": Case(HOURLY + misfire("all"), [*missed("12:00"), *missed("13:00"), *late("14:00"), *LIVE_HOUR]),
    "hourly by rate, all": Case(
        HOURLY_RATE + misfire("all"), [*missed("12:00"), *missed("13:00"), *late("14:00"), *LIVE_HOUR]
    ),
    "hourly, with a grace of four hours": Case(
        HOURLY + misfire("skip", "4h"), [*missed("12:00"), *missed("13:00"), *late("14:00"), *LIVE_HOUR]
    ),
    "minutely, all": Case(
        MINUTELY + misfire("all"),
        [*each(map(missed, minutes("12:00", "13:29"))), *each(map(late, minutes("13:30", "15:00"))), *LIVE_MINUTES],
    ),
    "minutely by rate, all": Case(
        MINUTELY_RATE + misfire("all"),
        [*each(map(missed, minutes("12:00", "13:29"))), *each(map(late, minutes("13:30", "15:00"))), *LIVE_MINUTES],
    ),
    "once at 13:00": Case(at("13:00"), missed("13:00")),
    "once at 13:15, within half an hour": Case([*at("13:15"), ("schedule-window", b"30m")], late("13:15")),
    "hourly until 13:15, coalesced": Case(
        HOURLY + until("13:15"), [*skipped(1, "12:00"), *missed("13:00"), *late("13:00", "finished")]
    ),
}

BY_LOOKBACK = {
    "looks all the way back": (FiringRules(), WHATEVER_THE_LOOKBACK | EVERYTHING_FIRES),
    "looks back 90 minutes": (FiringRules(90), WHATEVER_THE_LOOKBACK | OF_90_MINUTES),
    "looks back 90 minutes and fires what lies before": (
        FiringRules(90, "fire"),
        WHATEVER_THE_LOOKBACK | EVERYTHING_FIRES,
    ),
}

RECOVERIES = ("its disk", "a disk that misses the last transaction", "no disk", "no disk and a compacted changelog")


class Seen(NamedTuple):
    """What became visible of a schedule: its history, and its messages as (due, sequence, payload)."""

    history: list[HistoryEvent]
    messages: list[tuple[int, int, bytes | None]]


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize(("rules", "cases"), BY_LOOKBACK.values(), ids=BY_LOOKBACK)
async def test_after_an_outage_of_three_hours_history_is_what_the_table_says(
    producer: FakeProducer, tmp_path: Path, rules: FiringRules, cases: dict[str, Case], recovery: str
) -> None:
    partition = Partition(producer, RocksStore(tmp_path / "kept"))
    partition.rules = rules
    seen: dict[str, Seen] = defaultdict(lambda: Seen([], []))

    async def cycle(*commands: ConsumerRecord, now: int, applies: bool = True) -> None:
        await partition.run(*commands, now=now, applies=applies)
        for event in partition.history:
            assert event.at == now
            seen[event.id or ""].history.append(event)
        for record in partition.sent("reminders"):
            firing = parse_firing(record)
            seen[firing.id].messages.append((firing.due, firing.sequence, firing.payload))
        missed = [(letter.id, letter.due) for letter in partition.dead_letters if letter.due is not None]
        assert missed == [(event.id, event.due) for event in partition.history if event.event is EventType.MISSED]
        assert {letter.cause for letter in partition.dead_letters} <= {DeadLetterCause.MISSED, DeadLetterCause.REJECTED}

    async def run(until: int) -> None:
        while (wakes_at := partition.wakes_at) is not None and wakes_at <= until:
            await cycle(now=wakes_at)

    await cycle(*commands_of(cases, before=GONE), now=START)
    await run(GONE - 2 * MINUTE)
    await cycle(now=GONE - MINUTE, applies=recovery != RECOVERIES[1])
    partition.table.close()
    for before in seen.values():
        assert all(event.event in (EventType.SCHEDULED, EventType.FIRED) for event in before.history)
        before.history.clear()

    if recovery == RECOVERIES[3]:
        partition.compact()
    store = RocksStore(tmp_path / ("kept" if "no disk" not in recovery else "new"))
    brought_up = partition.restart(store, now=BACK)
    assert (brought_up == 0) is (recovery == RECOVERIES[0])
    split = {record.key[1:] for record in partition.changelog if record.key[:1] == PROGRESS_KIND}
    assert split == {
        identity("default", id) for id, one in seen.items() if id.endswith("large") and len(one.messages) > 0
    }
    await cycle(*commands_of(cases, after=GONE), now=BACK)
    while (wakes_at := partition.wakes_at) is not None and wakes_at <= BACK:
        await cycle(now=BACK)
    await run(END)
    partition.table.close()

    told = {id: [line(event) for event in one.history] for id, one in seen.items()}
    assert told == {id: case.expected for id, case in twice(cases)}
    for id, one in seen.items():
        fired = [(event.due, event.sequence) for event in one.history if event.event is EventType.FIRED]
        after = [message[:2] for message in one.messages if message[0] >= GONE]
        assert after == fired, id
        assert all(payload == payload_of(id) for _, _, payload in one.messages)
        dues, sequences = [message[0] for message in one.messages], [message[1] for message in one.messages]
        assert all(before < then for before, then in pairwise(dues)), "the order within a schedule is kept"
        assert all(before < then for before, then in pairwise(sequences))


@pytest.mark.parametrize("kept", [True, False])
async def test_what_was_missed_comes_in_due_order_over_all_schedules_before_what_is_due_now(
    producer: FakeProducer, tmp_path: Path, kept: bool
) -> None:
    partition = Partition(producer, RocksStore(tmp_path / "kept"))
    headers = [HOURLY, HOURLY_RATE, MINUTELY, MINUTELY_RATE]
    series = [
        command(*rhythm, *misfire("all"), *TO_REMINDERS, key=b"series-%d" % number, timestamp=START, offset=number)
        for number, rhythm in enumerate(headers)
    ]
    single = [
        command(*at(time), *TO_REMINDERS, key=time.encode(), timestamp=START, offset=10 + number)
        for number, time in enumerate(["14:59:59", "12:00", "13:30", "15:00:20", "12:00:01"])
    ]
    await partition.run(*series, *single, now=START)
    while (wakes_at := partition.wakes_at) is not None and wakes_at < GONE:
        await partition.run(now=wakes_at)
    partition.table.close()
    partition.restart(RocksStore(tmp_path / ("kept" if kept else "new")), now=BACK)
    dues: list[int] = []
    while (wakes_at := partition.wakes_at) is not None and wakes_at <= BACK:
        await partition.run(now=BACK)
        dues += [event.due or 0 for event in partition.history if event.event is EventType.FIRED]
    partition.table.close()
    assert len(dues) == 2 * 4 + 2 * 181 + 5
    assert dues == sorted(dues)


def commands_of(cases: dict[str, Case], before: int = END, after: int = 0) -> list[ConsumerRecord]:
    """Return the commands that were sent between two instants, one with a small payload and one with a large one."""
    return [
        command(
            *case.headers,
            *TO_REMINDERS,
            key=id.encode(),
            value=payload_of(id),
            offset=offset,
            timestamp=clock(case.sent),
        )
        for offset, (id, case) in enumerate(twice(cases))
        if after <= clock(case.sent) < before
    ]


def twice(cases: dict[str, Case]) -> list[tuple[str, Case]]:
    return [(f"{name}, {size}", case) for name, case in cases.items() for size in ("small", "large")]


def payload_of(id: str) -> bytes:
    return LARGE if id.endswith("large") else b"small"


def line(event: HistoryEvent) -> str:
    what = event.event.value if not isinstance(event.count, int) else f"{event.event.value} x{event.count}"
    due = "" if event.due is None else f"{shown(event.due)} "
    return f"{due}{what} at {shown(event.at)}"
