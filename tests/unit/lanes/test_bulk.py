"""Bulk commands, over the partitions of a commands topic: slices, totals, and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from support.partition import ANSWER, AT, HOUR, NAMES, TO_REMINDERS, Partition, command, due_at, topic

from light_scheduler.engine import Limits, decide_bulk
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.lanes.caution import Kind, Work, WorkFailedError
from light_scheduler.lanes.condemned import NOTHING_CONDEMNED
from light_scheduler.lanes.cycle import Cycle
from light_scheduler.model import EventType, Headers, HistoryEvent, Outcome, Result
from light_scheduler.tables import MemoryStore, Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM
from light_scheduler.wire.state import identity

COUNT = 3
KEYS = [next(key for key in map(str.encode, "abcdefgh") if partition_for(key, COUNT) == n) for n in range(COUNT)]
"""One that belongs to each partition."""

ALL = sorted(f"{number}/{name}" for number in range(COUNT) for name in (*(f"order-{n}" for n in range(10)), "other"))
"""The schedules that the cases begin with."""


class Topic:
    """The partitions of a commands topic: what they pass on to each other waits to be read there, in order."""

    def __init__(self, producer: Any) -> None:
        self.partitions = [Partition(producer, number=number, of=COUNT) for number in range(COUNT)]
        self.waiting: list[list[ConsumerRecord]] = [[] for _ in range(COUNT)]
        self.ends = [1] * COUNT
        self.history: list[HistoryEvent] = []
        self.results: list[Result] = []
        self.fired: list[str] = []
        self.rejected: list[tuple[str | None, int, int]] = []
        self.now = AT

    def send(self, number: int, *headers: tuple[str, bytes | None], value: bytes | None = b"") -> int:
        """Have a record wait in a partition; return its offset."""
        offset = self.ends[number]
        self.ends[number] += 1
        self.waiting[number].append(
            command(*headers, key=KEYS[number], value=value, offset=offset, partition=number, timestamp=self.now)
        )
        return offset

    def control(self, number: int, name: str, id: str, *headers: tuple[str, bytes | None]) -> int:
        """Send a command for one schedule, or for many; return its offset."""
        return self.send(number, ("schedule-command", name.encode()), ("schedule-id", id.encode()), *ANSWER, *headers)

    def put(self, number: int, *ids: str, due: int = AT + HOUR, labels: str = "", value: bytes = b"") -> None:
        """Send schedules."""
        ours: Headers = [due_at(due), *TO_REMINDERS, ("schedule-labels", labels.encode())]
        for id in ids:
            self.send(number, *ours, ("schedule-id", id.encode()), ("schedule-target-key", id.encode()), value=value)

    async def cycle(
        self, number: int, *, applies: bool = True, condemned: Mapping[Work, str] = NOTHING_CONDEMNED
    ) -> None:
        """Run a cycle of a partition with what waits there."""
        partition, taken = self.partitions[number], self.waiting[number]
        self.waiting[number] = []
        await partition.run(*taken, now=self.now, applies=applies, condemned=condemned)
        self.history += partition.history
        self.results += partition.results
        self.rejected += [(each.field, each.source_partition, each.source_offset) for each in partition.dead_letters]
        self.fired += [record.key.decode() for record in partition.sent("reminders")]
        for record in partition.sent(NAMES.commands):
            self.send(record.partition, *record.headers, value=record.value)

    async def settle(self) -> None:
        """Run cycles until nothing waits and nothing is at work."""
        while any(self.waiting) or any(self.at_work(number) for number in range(COUNT)):
            for number in range(COUNT):
                await self.cycle(number)

    def at_work(self, number: int) -> bool:
        return bool(Overlay(self.partitions[number].table).bulk_parts())

    @property
    def pending(self) -> dict[str, bool]:
        """All ids that are pending, and whether they are paused."""
        entries = [entry for partition in self.partitions for _, entry in partition.table.by_due("default")]
        return {entry.schedule.id: entry.progress.paused for entry in entries}

    @property
    def totals(self) -> list[tuple[str, str, Outcome, Any]]:
        """The answers to bulk commands."""
        return [(r.command, str(r.id), r.outcome, r.count) for r in self.results if str(r.id).endswith("*")]

    def told(self, id: str) -> list[str]:
        """Return the history of an id."""
        return [event.event.value for event in self.history if event.id == id]


@pytest.fixture
async def commands(producer: Any) -> Topic:
    return Topic(producer)


@pytest.fixture
async def filled(commands: Topic) -> Topic:
    """Ten schedules `order-0` to `order-9` in each partition, named after it as `0/order-0`, and one `other`."""
    for number in range(COUNT):
        commands.put(
            number, *(f"{number}/order-{each}" for each in range(10)), labels=f"partition=p{number},kind=order"
        )
        commands.put(number, f"{number}/other", labels="kind=other")
    await commands.settle()
    commands.history.clear()
    return commands


@pytest.mark.parametrize("most_bulk", [1, 3, 1_000])
@pytest.mark.parametrize("sent_to", range(COUNT))
async def test_a_cancel_for_all_reaches_every_partition_and_is_answered_once_with_the_total(
    filled: Topic, sent_to: int, most_bulk: int
) -> None:
    for partition in filled.partitions:
        partition.most_bulk = most_bulk
    offset = filled.control(sent_to, "cancel", "*")
    await filled.settle()

    assert filled.pending == {}
    answer = Result("cancel", "default", "*", Outcome.CANCELLED, partition=sent_to, offset=offset, count=33)
    assert filled.results == [answer]
    (total,) = [event for event in filled.history if event.id == "*"]
    assert (total.event, total.count, total.partition) == (EventType.CANCELLED, 33, sent_to)
    assert sorted(str(event.id) for event in filled.history if event.id != "*") == ALL


@pytest.mark.parametrize(
    ("id", "labels", "count"),
    [
        ("*", "", 33),
        ("1/*", "", 11),
        ("1/order-*", "", 10),
        ("1/order-3*", "", 1),
        ("4/*", "", 0),
        ("*", "kind=order", 30),
        ("*", "kind=order,partition=p2", 10),
        ("1/*", "kind=other", 1),
        ("1/*", "partition=p2", 0),
    ],
)
async def test_prefix_and_labels_select(filled: Topic, id: str, labels: str, count: int) -> None:
    filled.control(1, "pause", id, ("schedule-labels", labels.encode()))
    await filled.settle()

    assert filled.totals == [("pause", id, Outcome.PAUSED, count)]
    assert sum(filled.pending.values()) == count


async def test_another_tenant_is_not_touched(filled: Topic) -> None:
    filled.control(1, "cancel", "*", ("schedule-tenant", b"acme"))
    await filled.settle()

    assert filled.totals == [("cancel", "*", Outcome.CANCELLED, 0)]
    assert len(filled.pending) == 33


async def test_only_what_changes_is_counted(filled: Topic) -> None:
    filled.control(0, "pause", "0/order-0")
    filled.control(2, "pause", "*")
    filled.control(0, "pause", "*")
    await filled.settle()

    (first, second) = filled.totals
    assert first[3] + second[3] == 32, "each partition takes them in the order in which they come there"
    assert all(filled.told(id) == ["paused"] for id in filled.pending)


async def test_reschedule_and_trigger_reach_all(filled: Topic) -> None:
    filled.control(0, "reschedule", "*", ("schedule-after", b"10s"))
    await filled.settle()
    assert filled.totals == [("reschedule", "*", Outcome.RESCHEDULED, 33)]

    filled.control(0, "trigger", "2/order-*")
    await filled.settle()
    for number in range(COUNT):
        await filled.cycle(number)
    assert sorted(filled.fired) == sorted(f"2/order-{each}" for each in range(10))
    filled.now += 10_000
    for number in range(COUNT):
        await filled.cycle(number)
    assert sorted(filled.fired) == ALL


# -- slices -----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def halfway(filled: Topic) -> Topic:
    """A cancel for all at work in partition 0, which has dealt with order-0 to order-3."""
    filled.partitions[0].most_bulk = 4
    filled.control(0, "cancel", "*")
    await filled.cycle(0)
    await filled.cycle(0)
    assert len(filled.partitions[0].history) == 4
    assert sorted(filled.pending)[:2] == ["0/order-4", "0/order-5"]
    return filled


async def test_a_cycle_deals_with_no_more_than_a_slice(halfway: Topic) -> None:
    await halfway.cycle(0)
    assert len(halfway.partitions[0].history) == 4
    await halfway.cycle(0)
    assert len(halfway.partitions[0].history) == 3
    assert not halfway.at_work(0)


async def test_a_slice_ends_with_the_bytes_that_it_has_looked_at(commands: Topic) -> None:
    commands.put(0, *"abcdef", value=b"x" * 400_000)
    await commands.cycle(0)
    commands.control(0, "pause", "*")
    await commands.cycle(0)

    overlay = Overlay(commands.partitions[0].table)
    cycle = Cycle(commands.partitions[0].context, overlay, RecordBatches(AT), AT)
    assert cycle.advance_bulk(1_000, 1_000_000)

    entries = [overlay.get(identity("default", id)) for id in "abcdef"]
    assert [entry is not None and entry.progress.paused for entry in entries] == [True] * 3 + [False] * 3


async def test_what_is_due_and_was_cancelled_does_not_fire_before_its_slice_has_come(halfway: Topic) -> None:
    halfway.now = AT + HOUR
    await halfway.cycle(0)

    assert halfway.fired == []
    assert sorted(id for id in halfway.pending if id.startswith("0/")) == []
    await halfway.settle()
    assert halfway.fired == []
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


async def test_a_new_schedule_is_not_touched(halfway: Topic) -> None:
    halfway.put(0, "0/order-1", "0/order-77", "0/zzz")
    await halfway.settle()

    assert sorted(halfway.pending) == ["0/order-1", "0/order-77", "0/zzz"]
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


async def test_a_schedule_that_is_replaced_was_cancelled_before(halfway: Topic) -> None:
    halfway.put(0, "0/order-8")
    halfway.put(0, "0/order-8")
    await halfway.settle()

    assert halfway.told("0/order-8") == ["cancelled", "scheduled", "updated"]
    assert sorted(halfway.pending) == ["0/order-8"]
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


async def test_a_command_for_a_schedule_that_was_cancelled_finds_nothing(halfway: Topic) -> None:
    halfway.control(0, "trigger", "0/order-8")
    await halfway.settle()

    assert ("0/order-8", Outcome.NOT_FOUND) in [(result.id, result.outcome) for result in halfway.results]
    assert halfway.told("0/order-8") == ["cancelled"]
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


@pytest.mark.parametrize("paused_before", [False, True])
async def test_what_was_resumed_after_all_were_paused_stays_so(filled: Topic, paused_before: bool) -> None:
    if paused_before:
        filled.control(0, "pause", "0/order-8")
        await filled.settle()
    filled.partitions[0].most_bulk = 4
    filled.control(0, "pause", "*")
    await filled.cycle(0)
    filled.control(0, "resume", "0/order-8")
    await filled.settle()

    assert [id for id, paused in filled.pending.items() if not paused] == ["0/order-8"]
    assert filled.told("0/order-8") == ["paused", "resumed"]
    assert filled.totals == [("pause", "*", Outcome.PAUSED, 32 if paused_before else 33)]


async def test_bulk_commands_take_effect_in_their_order(filled: Topic) -> None:
    filled.partitions[0].most_bulk = 1
    for name in ("pause", "resume", "pause"):
        filled.control(0, name, "0/*")
    filled.now = AT + HOUR  # all of them are due
    await filled.settle()

    assert sorted(filled.fired) == [id for id in ALL if not id.startswith("0/")]
    assert all(paused for id, paused in filled.pending.items())
    assert len(filled.pending) == 11
    assert all(filled.told(id) == ["paused", "resumed", "paused"] for id in filled.pending)
    assert [count for *_, count in filled.totals] == [11, 11, 11]


# -- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
async def test_a_crash_between_any_two_cycles_neither_loses_nor_doubles_a_count(filled: Topic, kept: bool) -> None:
    for partition in filled.partitions:
        partition.most_bulk = 3
    filled.control(1, "pause", "*")
    while any(filled.waiting) or any(filled.at_work(number) for number in range(COUNT)):
        for number, partition in enumerate(filled.partitions):
            await filled.cycle(number, applies=False)
            partition.compact()
            partition.restart(partition.table.store if kept else MemoryStore(), now=filled.now)

    assert filled.totals == [("pause", "*", Outcome.PAUSED, 33)]
    assert all(filled.told(id) == ["paused"] for id in filled.pending)
    assert all(paused for paused in filled.pending.values())


# -- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        pytest.param(
            [("schedule-command", b"reschedule"), ("schedule-every", b"1h"), ("schedule-end", b"1767225600001")],
            "schedule-end",
            id="no time to fire at",
        ),
        pytest.param(
            [("schedule-command", b"cancel"), ("schedule-expected-version", b"1")],
            "schedule-expected-version",
            id="version",
        ),
        pytest.param([("schedule-command", b"cancel"), ("schedule-labels", b"x")], "schedule-labels", id="labels"),
        pytest.param([("schedule-command", b"cancel"), ("trace", b"x" * 600)], "payload", id="too large to be copied"),
        pytest.param([("schedule-command", b"cancel"), (FORWARDED_FROM, b"9:1:1")], FORWARDED_FROM, id="from nowhere"),
        pytest.param([("schedule-command", b"cancel"), (FORWARDED_FROM, b"0:1:1")], FORWARDED_FROM, id="from itself"),
    ],
)
async def test_what_cannot_be_carried_out_is_rejected_where_it_was_sent_and_goes_nowhere(
    filled: Topic, headers: Headers, field: str
) -> None:
    filled.partitions[0].topics[NAMES.commands] = topic(COUNT, 500)
    filled.send(0, ("schedule-id", b"*"), *headers, *ANSWER)
    await filled.cycle(0)

    assert [rejected for rejected, *_ in filled.rejected] == [field]
    assert [(result.outcome, result.field) for result in filled.results] == [(Outcome.REJECTED, field)]
    assert filled.waiting == [[], [], []]
    await filled.cycle(0)
    assert len(filled.pending) == 33


@pytest.mark.parametrize(
    ("count", "token"),
    [
        pytest.param("1:1:5", None, id="another command"),
        pytest.param("999:1:5", None, id="no command"),
        pytest.param("12:0:5", None, id="reported already"),
        pytest.param("12:7:5", None, id="no such partition"),
        pytest.param("12:1:5", "0" * 32, id="another token"),
    ],
)
async def test_a_count_that_nobody_waits_for_is_rejected_and_not_counted(
    filled: Topic, count: str, token: str | None
) -> None:
    offset = filled.control(0, "pause", "*")
    assert offset == 12
    await filled.cycle(0)
    given = dict(filled.waiting[1][0].headers)[FORWARDED_FROM].decode().rpartition(":")[2]
    await filled.cycle(0)
    forged = filled.send(0, (BULK_COUNT, f"{count}:{token or given}".encode()), *ANSWER, value=None)
    await filled.settle()

    assert filled.totals == [("pause", "*", Outcome.PAUSED, 33)]
    assert filled.rejected == [(BULK_COUNT, 0, forged)]
    assert filled.told(KEYS[0].decode()) == ["rejected"]
    assert [(r.outcome, r.offset) for r in filled.results if r.outcome is Outcome.REJECTED] == [("rejected", forged)]


async def test_a_copy_for_many_that_no_lane_has_made_is_rejected_and_not_reported(filled: Topic) -> None:
    offset = filled.send(1, ("schedule-command", b"pause"), ("schedule-id", b"*"), (FORWARDED_FROM, b"0:12:1"))
    await filled.settle()

    assert filled.rejected == [(FORWARDED_FROM, 0, 12)]
    assert not any(filled.pending.values())
    assert filled.ends[1] == offset + 1


async def test_a_copy_for_one_that_is_not_understood_reports_nothing(filled: Topic) -> None:
    filled.send(1, ("schedule-of-tomorrow", b"1"), (FORWARDED_FROM, b"0:12:1"))
    await filled.settle()

    assert [field for field, *_ in filled.rejected] == ["schedule-of-tomorrow"]


async def test_a_copy_that_is_not_understood_holds_no_total_up(filled: Topic) -> None:
    offset = filled.control(0, "pause", "*")
    await filled.cycle(0)
    (copy,) = filled.waiting[1]
    filled.waiting[1].clear()
    filled.send(1, *copy.headers, ("schedule-of-tomorrow", b"1"))
    await filled.settle()

    assert filled.totals == [("pause", "*", Outcome.PAUSED, 22)]
    assert filled.rejected == [("schedule-of-tomorrow", 0, offset)]


async def test_a_count_that_no_lane_writes_is_rejected(filled: Topic) -> None:
    offset = filled.send(0, (BULK_COUNT, b"many"), value=None)
    await filled.cycle(0)

    assert filled.rejected == [(BULK_COUNT, 0, offset)]


async def test_a_schedule_that_would_be_too_large_with_its_new_rule_stays_as_it_is(filled: Topic) -> None:
    filled.partitions[0].topics["app-schedules-changelog"] = topic(COUNT, 1_000)
    filled.control(1, "reschedule", "*", ("schedule-cron", b"* * * * *" + b" " * 900))
    await filled.settle()

    assert filled.totals == [("reschedule", "*", Outcome.RESCHEDULED, 22)]


async def test_the_json_form_selects_too(filled: Topic) -> None:
    filled.send(
        2,
        ("content-type", b"application/vnd.light-scheduler.command+json"),
        value=b'{"command": "cancel", "id": "*", "labels": {"kind": "other"}, "reply_topic": "answers"}',
    )
    await filled.settle()

    assert filled.totals == [("cancel", "*", Outcome.CANCELLED, 3)]


async def test_an_id_over_the_limit_is_rejected(filled: Topic) -> None:
    filled.partitions[0].limits = Limits(1_000, 5)
    filled.control(0, "cancel", "123456*")
    await filled.cycle(0)

    assert [result.outcome for result in filled.results] == [Outcome.REJECTED]


@pytest.mark.parametrize("changed", [0, 3])
async def test_a_command_for_many_that_cannot_be_carried_out_ends_where_it_stands_and_the_others_go_on(
    filled: Topic, changed: int
) -> None:
    filled.partitions[0].most_bulk = changed
    offset = filled.control(0, "cancel", "*")
    await filled.cycle(0)
    await filled.cycle(0)
    await filled.cycle(0, condemned={Work(Kind.BULK, offset): "ValueError('x')"})
    assert not filled.at_work(0)
    await filled.settle()

    assert filled.totals == [("cancel", "*", Outcome.CANCELLED, changed + 22)]
    assert [(event.id, event.reason) for event in filled.history if event.event is EventType.REJECTED] == [
        ("*", f"the scheduler fails to carry it out: ValueError('x'); {changed} schedules were changed before")
    ]


async def test_a_command_for_many_that_is_over_is_not_told_of_when_it_is_condemned(filled: Topic) -> None:
    offset = filled.control(0, "cancel", "*")
    await filled.settle()
    filled.history.clear()
    await filled.cycle(0, condemned={Work(Kind.BULK, offset): "why"})
    assert filled.history == []


async def test_the_command_for_many_that_fails_is_named_and_not_those_before_it(
    filled: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.partitions[0].most_bulk = 13  # all of what the first one selects, and then some
    filled.control(0, "pause", "0/other*")
    failing = filled.control(0, "cancel", "0/order-*")
    await filled.cycle(0)

    def fail(*_: Any) -> Any:
        raise ValueError("an error of the scheduler's own")

    monkeypatch.setattr("light_scheduler.lanes.history.encode_history", fail)
    with pytest.raises(WorkFailedError) as caught:
        await filled.cycle(0)
    assert caught.value.work == Work(Kind.BULK, failing - 1)
    monkeypatch.undo()
    monkeypatch.setattr("light_scheduler.lanes.bulk.decide_bulk", only_pauses(fail))
    with pytest.raises(WorkFailedError) as caught:
        await filled.cycle(0)
    assert caught.value.work == Work(Kind.BULK, failing)


def only_pauses(otherwise: Any) -> Any:
    """Decide for commands that pause, and for no others."""
    return lambda command, *rest: (decide_bulk if command.name == "pause" else otherwise)(command, *rest)


@pytest.mark.parametrize(("room", "is_taken"), [(700, False), (1_400, True)])
async def test_a_command_for_many_that_the_changelog_has_no_room_for_is_rejected(
    filled: Topic, room: int, is_taken: bool
) -> None:
    for partition in filled.partitions:
        partition.topics["app-schedules-changelog"] = topic(COUNT, room)
    filled.control(0, "cancel", "*", ("schedule-labels", b"kind=" + b"x" * 250))
    await filled.settle()

    assert [(result.outcome, result.field) for result in filled.results] == [
        (Outcome.CANCELLED, None) if is_taken else (Outcome.REJECTED, "schedule-id")
    ]
    assert len(filled.pending) == len(ALL)
