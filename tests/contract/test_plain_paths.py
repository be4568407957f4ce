"""Plain commands and firings come to the same by their short way as by the general one, byte for byte."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.foreign import FOREIGN
from support.partition import ANSWER, AT, HOUR, NAMES, TO_REMINDERS, Partition, command, due_at, topic
from support.producing import FakeProducer
from support.tries import tries

from light_scheduler.engine import FiringRules
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.plain.commands import PlainCommands
from light_scheduler.lanes.plain.firings import PlainFirings
from light_scheduler.lanes.plain.series import PlainSeries
from light_scheduler.model import Entry, Headers
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules

IDS = [b"a", b"b", b'"\\', b"\xc3\xa9", b"long" * 20, b" ", b"\xff", b"a*"]

keys = st.sampled_from([*IDS, b"a", b"b", None])
extras = st.lists(
    st.sampled_from(
        [
            ("trace", b"1"),
            ("trace", None),
            ("schedule-priority", b"7"),
            ("schedule-ttl", b"5s"),
            ("schedule-tenant", b"acme"),
            ("schedule-label-x", b"y"),
            ("schedule-target-key", b"k"),
            ("schedule-target-partition", b"2"),
            ("schedule-every", b"2s"),
            ("schedule-ack-timeout", b"3s"),
            ("schedule-command", b"cancel"),
            ("schedule-command", b"pause"),
            ("schedule-command", b"trigger"),
            ("schedule-typo", b""),
            *ANSWER,
        ]
    ),
    max_size=2,
)
targets = st.sampled_from(["reminders", "reminders", "reminders", "compacted", "small", "missing", NAMES.history])
payloads = st.one_of(st.none(), st.just(b"payload"), st.binary(max_size=9), st.just(b"x" * 2_000))


class Step(NamedTuple):
    """One cycle: commands, then what is due at `now`."""

    commands: list[Any]
    now: int


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Draw cycles; nearly all commands of most are plain."""
    offset, now, drawn = 0, AT, []
    for _ in range(draw(st.integers(1, 4))):
        commands = []
        for _ in range(draw(st.integers(0, 8))):
            headers: Headers = [
                due_at(now + draw(st.integers(-1_000, 5_000))),
                ("schedule-target-topic", draw(targets).encode()),
                *draw(st.one_of(st.just([]), extras)),
            ]
            commands.append(command(*headers, key=draw(keys), value=draw(payloads), offset=offset, timestamp=now))
            offset += draw(st.integers(1, 2))
        drawn.append(Step(commands, now))
        now += draw(st.integers(1, 4_000))
    return [*drawn, Step([], now + HOUR)]


timings = st.sampled_from(
    [
        [("schedule-every", b"2s")],
        [("schedule-every", b"300ms")],
        [("schedule-cron", b"* * * * * *"), ("schedule-cron-dialect", b"spring")],
        [("schedule-cron", b"* * * * *")],
        [("schedule-cron", b"30 2 * * *"), ("schedule-timezone", b"Europe/Berlin")],
        [("schedule-cron", b"0 0 1 1 *")],
    ]
)
bounds = st.lists(
    st.sampled_from(
        [
            ("schedule-start", b"%d" % (AT + 1_500)),
            ("schedule-end", b"%d" % (AT + 9_000)),
            ("schedule-max-firings", b"2"),
            ("schedule-jitter", b"500ms"),
            ("schedule-window", b"500ms"),
            ("schedule-misfire", b"all"),
            ("schedule-misfire", b"skip"),
            ("schedule-misfire-grace", b"1s"),
        ]
    ),
    max_size=1,
)


@st.composite
def steps_of_series(draw: st.DrawFn) -> list[Step]:
    """Draw cycles in which series begin, fire, are changed and end; most are plain."""
    offset, now, drawn = 0, AT, []
    for _ in range(draw(st.integers(1, 8))):
        commands = []
        for _ in range(draw(st.integers(0, 4))):
            headers: Headers = [
                *draw(timings),
                ("schedule-target-topic", draw(targets).encode()),
                *draw(st.one_of(st.just([]), bounds)),
                *draw(st.one_of(st.just([]), extras)),
            ]
            commands.append(command(*headers, key=draw(keys), value=draw(payloads), offset=offset, timestamp=now))
            offset += 1
        drawn.append(Step(commands, now))
        now += draw(st.sampled_from([1, 700, 2_000, 4_000, 60_000, HOUR]))
    return [*drawn, Step([], now + 2_000)]


def each_due(firings: Mapping[str, Counter[int]]) -> dict[tuple[str, int], int]:
    """Return how many firings were counted, by tenant and when they were due."""
    return {(tenant, due): count for tenant, dues in firings.items() for due, count in dues.items()}


def played(steps: list[Step], plain_paths: bool, prepare: Callable[[Partition], None] = lambda _: None) -> Any:
    """Run cycles over an empty table; return all that they sent, counted and stored."""

    async def play() -> Any:
        producer = FakeProducer()
        partition = Partition(producer)
        partition.plain_paths = plain_paths
        partition.topics["compacted"] = topic(3)._replace(is_compacted=True)
        partition.topics["small"] = topic(2, 300)
        prepare(partition)
        seen: list[Any] = []
        for step in steps:
            cycle = await partition.run(*step.commands, now=step.now)
            assert each_due(cycle.firings) == Counter(
                (entry.schedule.tenant, entry.progress.due) for entry in cycle.delivered
            )
            seen.append((cycle.outcomes, cycle.events, cycle.delivered, cycle.forwarded, partition.table.pending))
        return sorted(producer.batches), seen, list(partition.table.store.scan(b"", b"\xff"))

    return asyncio.run(play())


@given(steps())
@settings(max_examples=tries(300))
def test_whatever_comes_the_short_way_leaves_what_the_general_one_does(steps: list[Step]) -> None:
    short, general = played(steps, True), played(steps, False)
    assert short == general
    event(f"delivers: {any(delivered for _, _, delivered, _, _ in general[1])}")


def with_rules(partition: Partition) -> None:
    partition.tenants = FixedTenancy(TenantBook([Tenant(name="default", rules=TenantRules(targets=("out.*",)))]))


def with_lookback(partition: Partition) -> None:
    partition.rules = FiringRules(lookback_minutes=1, retries=1)


def with_little_room(partition: Partition) -> None:
    partition.topics[NAMES.history] = topic(1, 200)


def with_room_for_few(partition: Partition) -> None:
    partition.limits = replace(partition.limits, max_pending_per_partition=2)


def of_three(partition: Partition) -> None:
    partition.topics[NAMES.commands] = topic(3)


@given(steps_of_series())
@settings(max_examples=tries(300))
def test_whatever_series_do_the_short_way_leaves_what_the_general_one_does(steps: list[Step]) -> None:
    short, general = played(steps, True), played(steps, False)
    assert short == general
    event(f"delivers: {any(delivered for _, _, delivered, _, _ in general[1])}")


@pytest.mark.parametrize("prepare", [with_rules, with_lookback, with_little_room, with_room_for_few, of_three])
@given(st.one_of(steps(), steps_of_series()))
@settings(max_examples=tries(60))
def test_it_does_under_other_circumstances_too(prepare: Callable[[Partition], None], steps: list[Step]) -> None:
    assert played(steps, True, prepare) == played(steps, False, prepare)


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_it_does_for_the_records_of_other_schedulers(name: str) -> None:
    foreign = FOREIGN[name]

    def prepare(partition: Partition) -> None:
        partition.dialect = Partition(FakeProducer(), dialect=foreign.dialect).dialect

    records = [foreign.schedule(AT + 2_000, b"payload", offset, AT) for offset in range(3)]
    steps = [Step(records, AT), Step([], AT + HOUR)]
    assert played(steps, True, prepare) == played(steps, False, prepare)


def test_plain_work_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    run, fire = PlainCommands.take_run, PlainFirings.fire

    def take_run(self: PlainCommands, records: list[Any]) -> None:
        before = len(records)
        run(self, records)
        taken.append(before - len(records))

    def fire_noted(self: PlainFirings, entry: Entry) -> bool:
        taken.append(fire(self, entry))
        return bool(taken[-1])

    monkeypatch.setattr(PlainCommands, "take_run", take_run)
    monkeypatch.setattr(PlainFirings, "fire", fire_noted)
    records = [command(due_at(AT + 1), *TO_REMINDERS, key=b"%d" % number, offset=number) for number in range(3)]
    played([Step(records, AT), Step([], AT + 1)], True)
    assert taken == [3, True, True, True]


@pytest.mark.parametrize("tenant", [[], [("schedule-tenant", b"acme")]], ids=["default", "another"])
@pytest.mark.parametrize(
    "timing",
    [[("schedule-every", b"2s")], [("schedule-cron", b"* * * * *")]],
    ids=["every", "cron"],
)
def test_plain_series_take_the_short_way(monkeypatch: pytest.MonkeyPatch, timing: Headers, tenant: Headers) -> None:
    fired: list[bool] = []
    fire = PlainSeries.fire

    def fire_noted(self: PlainSeries, entry: Entry) -> Entry | None:
        following = fire(self, entry)
        fired.append(following is not None)
        return following

    monkeypatch.setattr(PlainSeries, "fire", fire_noted)
    records = [command(*timing, *TO_REMINDERS, *tenant, key=b"a", timestamp=AT)]
    steps = [Step(records, AT), *(Step([], AT + turn * 20_000) for turn in range(1, 7))]
    assert played(steps, True) == played(steps, False)
    assert fired == [True] * len(fired)
    assert len(fired) >= 2


@pytest.mark.parametrize("room", range(21_000, 34_001, 1_000))
def test_it_does_for_ids_of_which_a_history_event_is_too_large(room: int) -> None:
    def prepare(partition: Partition) -> None:
        partition.topics[NAMES.history] = topic(1, room)
        partition.limits = replace(partition.limits, max_id_bytes=10_000)

    record = command(due_at(AT + 1), *TO_REMINDERS, key=b'"' * 10_000)
    steps = [Step([record], AT), Step([], AT + 1)]
    assert played(steps, True, prepare) == played(steps, False, prepare)
