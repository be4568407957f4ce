"""What waits for another partition and cannot be sent any more: it is dealt with, and whoever waits for it is told."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count, islice
from typing import Any

import msgspec
import pytest
from support import bulk
from support import partition as supported
from support.moving import AFTER, BEFORE, CANCEL, GROWN, MOVES, ONCE, SECRET, STAYS, Known, grown, mark, passed, record
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, TO_REMINDERS, Partition, due_at, topic
from support.producing import FakeProducer
from support.tables import by_due

from light_scheduler.errors import LaneError
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.lanes.cycle.stranded import log_dropped
from light_scheduler.lanes.failures.failing_work_search import WorkFailedError
from light_scheduler.lanes.failures.restrictions import Restrictions
from light_scheduler.lanes.growing.handover import AGAIN_MS, HandoverPass
from light_scheduler.model import Headers, Outcome
from light_scheduler.model.adoption import Emptied
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.handover import emptied_headers
from light_scheduler.wire.ids import record_id
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM, Count, count_headers
from light_scheduler.wire.waiting_state import (
    WaitingRecord,
    decode_waiting,
    encode_waiting,
    waiting_key,
)

COUNT, HERE, THERE, AWAY = 4, 0, 1, 3
FEWER = 3
command = partial(supported.command, partition=HERE)


def key_of(before: int, after: int) -> bytes:
    """Return a key that belongs to one partition of four, and to another one of three."""
    keys = (b"%d" % number for number in count())
    return next(key for key in keys if partition_for(key, COUNT) == before and partition_for(key, FEWER) == after)


BACK, ELSEWHERE = key_of(AWAY, HERE), key_of(AWAY, THERE)


@pytest.fixture
async def partition(producer: Any) -> Partition:
    """Partition 0 of four; partition 3 takes nothing."""
    partition = Partition(producer, number=HERE, of=COUNT)
    partition.read_from("first", COUNT)
    partition.away = frozenset({AWAY})
    return partition


def schedule(key: bytes, *headers: tuple[str, bytes | None], **fields: Any) -> Any:
    return command(due_at(AT + HOUR), *TO_REMINDERS, *headers, key=key, **fields)


def waiting(partition: Partition) -> dict[int, int]:
    return {number: queue.waiting for number, queue in Overlay(partition.table).others.waiting().items()}


def written(partition: Partition) -> list[tuple[int, bytes | None]]:
    return [(each.partition, each.key) for each in partition.sent(NAMES.commands)]


async def test_a_command_for_a_partition_that_is_gone_is_carried_out_or_passed_on_as_if_it_had_just_arrived(
    partition: Partition,
) -> None:
    await partition.run(
        schedule(BACK, *ANSWER, offset=7), schedule(ELSEWHERE, offset=8), command(key=ELSEWHERE, value=None, offset=9)
    )
    partition.read_from("second", FEWER)
    cycle = await partition.run()
    assert [(each.outcome, each.partition, each.offset) for each in partition.results] == [(Outcome.SCHEDULED, HERE, 7)]
    assert (partition.table.pending, written(partition)) == (1, [(THERE, ELSEWHERE), (THERE, ELSEWHERE)])
    sent = [dict(each.headers)[FORWARDED_FROM] for each in partition.sent(NAMES.commands)]
    assert sent == [b"0:8:%d" % AT, b"0:9:%d" % AT]
    assert (waiting(partition), partition.dead_letters, cycle.stranded.dropped) == ({}, [], [])


async def test_a_command_came_after_the_bulk_commands_that_were_sent_before_it_to_the_former_topic(
    partition: Partition,
) -> None:
    partition.read_from("second", COUNT)
    partition.most_bulk = 1
    keys = (b"%d" % number for number in count())
    ours = list(islice((key for key in keys if partition_for(key, COUNT) == partition_for(key, FEWER) == HERE), 3))
    await partition.run(*(schedule(key, offset=offset) for offset, key in enumerate(ours)))
    pause = command(("schedule-command", b"pause"), ("schedule-id", b"*"), key=ours[0], offset=10)
    await partition.run(pause, schedule(BACK, ("schedule-id", b"the last"), offset=20))
    partition.read_from("third", FEWER)
    for _ in range(10):
        await partition.run()
    paused = {entry.schedule.id.encode(): entry.progress.paused for _, entry in by_due(partition.table, "default")}
    assert paused == {**dict.fromkeys(ours, True), b"the last": False}


async def test_a_command_is_passed_on_anew_also_if_its_partition_exists_in_the_new_topic(
    partition: Partition,
) -> None:
    keys = (b"%d" % number for number in count())
    moved = next(key for key in keys if partition_for(key, COUNT) == AWAY and partition_for(key, 6) == 5)
    stays = next(key for key in keys if partition_for(key, COUNT) == partition_for(key, 6) == AWAY)
    await partition.run(schedule(moved, offset=1), schedule(stays, offset=2), schedule(moved, offset=3))
    partition.read_from("second", 6)
    await partition.run()
    assert waiting(partition) == {AWAY: 3}, "nothing is known of it while it is away"
    partition.away = frozenset()
    await partition.run()
    assert (written(partition), waiting(partition)) == ([(5, moved), (5, moved), (AWAY, stays)], {})
    sent = [dict(each.headers)[FORWARDED_FROM] for each in partition.sent(NAMES.commands)]
    assert sent == [b"0:1:%d" % AT, b"0:3:%d" % AT, b"0:2:%d" % AT]


async def test_the_same_topic_gets_what_waits_as_it_is_and_so_does_one_that_may_be_the_same(
    partition: Partition,
) -> None:
    await partition.run(schedule(BACK, offset=1))
    partition.away = frozenset()
    cycle = await partition.run()
    assert (written(partition), cycle.stranded.works) == ([(AWAY, BACK)], [])

    partition.away = frozenset({AWAY})
    partition.read_from("", COUNT)  # as told by brokers that know no ids
    await partition.run(schedule(BACK, offset=2))
    partition.away = frozenset()
    partition.read_from("first", COUNT)
    cycle = await partition.run()
    assert (written(partition), cycle.stranded.works) == ([(AWAY, BACK)], [])


async def test_what_an_earlier_version_has_waiting_is_sent_or_passed_on_anew(partition: Partition) -> None:
    await partition.run(schedule(BACK, offset=1))
    overlay = Overlay(partition.table)
    kept = decode_waiting(overlay.others.get(waiting_key(AWAY, 0)) or b"")
    without = b"\x82\x93" + encode_waiting(kept._replace(topic_id="", tenant=""))[2:-2]
    assert decode_waiting(without) == kept._replace(topic_id="", tenant="")
    overlay.replay(waiting_key(AWAY, 0), without)
    overlay.apply(changelog_offset=100, complete_at=AT)
    partition.read_from("second", FEWER)
    await partition.run()
    assert (partition.table.pending, waiting(partition)) == (1, {})


async def test_what_workers_know_a_partition_for_that_the_metadata_do_not_tell_of_waits_and_is_in_doubt(
    partition: Partition,
) -> None:
    partition.partitionings = Known(Partitioning(COUNT, secret=SECRET))
    await partition.run(schedule(BACK, offset=1))
    partition.away, partition.topics[NAMES.commands] = frozenset(), topic(FEWER)
    cycle = await partition.run()
    assert (waiting(partition), written(partition), cycle.waiting.are_in_doubt) == ({AWAY: 1}, [], True)
    partition.topics[NAMES.commands] = topic(COUNT)
    cycle = await partition.run()
    assert (waiting(partition), written(partition), cycle.waiting.are_in_doubt) == ({}, [(AWAY, BACK)], False)


async def test_a_command_that_has_become_too_large_is_rejected_and_what_is_behind_it_is_sent(
    partition: Partition,
) -> None:
    await partition.run(
        schedule(BACK, *ANSWER, value=b"n" * 2_000, offset=1), schedule(ELSEWHERE, value=b"small", offset=2)
    )
    partition.away, partition.topics[NAMES.commands] = frozenset(), topic(COUNT, 1_000)
    await partition.run()
    (letter,) = partition.dead_letters
    assert (letter.field, letter.value, letter.source_partition, letter.source_offset) == (
        "payload",
        b"n" * 2_000,
        HERE,
        1,
    )
    assert letter.reason.startswith("has waited for partition 3, and is too large to be passed on by now: the record")
    assert [(each.outcome, each.offset) for each in partition.results] == [(Outcome.REJECTED, 1)]
    assert (waiting(partition), written(partition)) == ({}, [(AWAY, ELSEWHERE)])


async def test_a_dead_letter_that_is_too_large_as_well_is_written_without_its_content(partition: Partition) -> None:
    await partition.run(schedule(BACK, *ANSWER, value=b"n" * 2_000, offset=1))
    partition.away = frozenset()
    partition.topics[NAMES.commands] = partition.topics[NAMES.dead_letters] = topic(COUNT, 1_000)
    await partition.run()
    assert [(each.source_offset, each.value) for each in partition.dead_letters] == [(1, None)]
    assert [each.outcome for each in partition.results] == [Outcome.REJECTED]


@pytest.mark.parametrize("how", ["gone", "too large"])
async def test_a_command_that_fails_when_it_is_dealt_with_is_refused_and_those_behind_it_are_not(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    size = 2_000 if how == "too large" else 0
    await partition.run(
        schedule(BACK, value=b"n" * size, offset=1), schedule(key_of(AWAY, HERE), value=b"n" * size, offset=2)
    )
    partition.away = frozenset()
    if how == "gone":
        partition.read_from("second", FEWER)
    else:
        partition.topics[NAMES.commands] = topic(COUNT, 1_000)
    failing = "take" if how == "gone" else "reject"
    done = []

    def fails_first(_: object, arrived: Any, *rest: Any) -> None:
        if arrived.offset == 1:
            raise ZeroDivisionError
        done.append(arrived.offset)

    monkeypatch.setattr(f"light_scheduler.lanes.cycle.commands.Commands.{failing}", fails_first)
    with pytest.raises(WorkFailedError) as caught:
        await partition.run()
    cycle = await partition.run(condemned={caught.value.work: "ZeroDivisionError()"})
    assert (done, cycle.condemned_met, waiting(partition)) == ([2], [caught.value.work], {})
    (letter,) = partition.dead_letters
    assert (letter.source_offset, letter.reason) == (1, "the scheduler fails to carry it out: ZeroDivisionError()")


# -- bulk commands ----------------------------------------------------------------------------------------------------


async def test_a_bulk_command_whose_copy_cannot_be_sent_is_answered_and_names_the_partition(producer: Any) -> None:
    lanes = bulk.Topic(producer)
    for number in range(bulk.COUNT):
        lanes.put(number, f"{number}/a")
    await lanes.settle()
    for lane in lanes.partitions:
        lane.read_from("first", bulk.COUNT)
    lanes.partitions[0].away = frozenset({2})
    lanes.control(0, "cancel", "*")
    await lanes.settle()
    assert lanes.totals == []
    lanes.partitions[0].read_from("second", 2)
    cycle = await lanes.cycle(0)
    assert lanes.totals == [("cancel", "*", Outcome.CANCELLED, 2)]
    assert lanes.results[-1].reason == "partition 2 has not confirmed the command"
    assert cycle.stranded.dropped == [
        f"what waits for partition 2 cannot be sent any more: topic {NAMES.commands} was deleted and created again"
    ]


async def test_a_bulk_command_whose_copy_has_become_too_large_is_answered_as_well(producer: Any) -> None:
    lanes = bulk.Topic(producer)
    lanes.partitions[0].away = frozenset({2})
    lanes.control(0, "cancel", "*", ("note", b"n" * 2_000))
    await lanes.settle()
    lanes.partitions[0].away, lanes.partitions[0].topics[NAMES.commands] = frozenset(), topic(bulk.COUNT, 1_000)
    await lanes.cycle(0)
    assert [each.reason for each in lanes.results] == ["partition 2 has not confirmed the command"]


async def test_a_copy_of_a_bulk_command_that_is_answered_already_is_only_dropped(partition: Partition) -> None:
    forged = ("schedule-forwarded-from", b"0:5:%d:%032x" % (AT, 1)), ("schedule-command", b"cancel")
    cycle = await partition.run()
    cycle.stranded.strand(AWAY, 0, WaitingRecord(b"*", None, list(forged), "zeroth"))
    assert len(cycle.stranded.dropped) == 1


async def test_a_report_is_sent_again_if_its_partition_exists_and_dropped_if_not(partition: Partition) -> None:
    partition.away = frozenset({THERE, AWAY})
    await report(partition, THERE, AWAY)
    partition.away = frozenset()
    partition.read_from("second", FEWER)
    cycle = await partition.run()
    assert [(each.partition, BULK_COUNT in dict(each.headers)) for each in partition.sent(NAMES.commands)] == [
        (THERE, True)
    ]
    assert (waiting(partition), len(cycle.stranded.dropped)) == ({}, 1)


async def report(partition: Partition, *to: int) -> None:
    """Have the reports of a bulk command wait for partitions."""
    overlay, batches = Overlay(partition.table), partition.context.new_batches(AT)
    cycle = Cycle(partition.context, overlay, batches, AT, Restrictions(away=partition.away))
    for number in to:
        cycle.waiting.write(number, WaitingRecord(None, None, count_headers(Count(5, HERE, 1, f"{1:032x}"))))
    overlay.apply(changelog_offset=100, complete_at=AT)


# -- a topic that had grown -------------------------------------------------------------------------------------------

FORMER, HOME = 1, 5
"""Where `MOVES` belonged, and where it belongs."""
AGAIN = 6
"""The partitions of the new topic. `MOVES` still belongs to the same one."""
OTHER = next(n for n in count(AGAIN) if partition_for(MOVES, n) not in (FORMER, HOME))
"""With so many it belongs to one that is neither."""


def lane(number: int, partitioning: Partitioning = GROWN) -> Partition:
    """Return a partition of the topic that has grown, before any was moved."""
    lane = Partition(FakeProducer(), number=number, of=partitioning.partitions)
    grown(lane, partitioning)
    lane.read_from("first", partitioning.partitions)
    return lane


def replaced(lane: Partition, of: int = AGAIN) -> None:
    """Have the topic created again with so many partitions."""
    lane.away = frozenset()
    lane.read_from("second", of)
    grown(lane, Partitioning(of, secret=SECRET))


def delay(lane: Partition, most: float) -> None:
    """Have commands above so many a second, in all partitions, delayed."""
    rules = TenantRules(commands_per_second=most, over_rate=OverRate.DELAY)
    lane.tenants.book = TenantBook([Tenant(name="default", rules=rules)])


def lent(lane: Partition) -> bool:
    return Overlay(lane.table).others.any_lent


async def test_what_a_grown_topic_has_waiting_would_stop_the_partition_that_reads_it_in_a_smaller_topic() -> None:
    home = lane(HOME, replace(GROWN, following=GROWN.running))
    home.away = frozenset({FORMER})
    await home.run(record(HOME, ("schedule-command", b"pause"), ("schedule-id", b"*"), offset=49))
    await home.run(record(HOME, ("schedule-command", b"pause"), offset=50))
    kept = [decode_waiting(Overlay(home.table).others.get(waiting_key(FORMER, number)) or b"") for number in range(2)]
    reader = lane(FORMER)
    replaced(reader)
    for each in kept:
        with pytest.raises(LaneError):
            await reader.run(record(FORMER, *each.headers, key=each.key, value=each.value))
    replaced(home)
    await home.run()
    for each in passed(home, FORMER):
        await reader.run(each)
    assert (waiting(home), reader.dead_letters) == ({}, [])


async def test_a_question_that_waits_is_a_command_for_this_partition_again_and_it_waits_for_nothing_to_come_back() -> (
    None
):
    home = lane(HOME)
    home.away = frozenset({FORMER})
    await home.run(record(HOME, *ONCE, *ANSWER, offset=50), record(HOME, *ONCE, ("schedule-id", b"b"), offset=51))
    assert (waiting(home), lent(home)) == ({FORMER: 2}, True)
    replaced(home)
    await home.run()
    assert (waiting(home), lent(home), home.dead_letters) == ({}, False, [])
    assert [(each.outcome, each.offset) for each in home.results] == [(Outcome.SCHEDULED, 50)]
    assert (home.table.pending, written(home)) == (2, [])


async def test_a_question_that_has_become_too_large_is_rejected_where_it_was_asked() -> None:
    home = lane(HOME)
    home.away = frozenset({FORMER})
    await home.run(record(HOME, *ONCE, *ANSWER, value=b"n" * 2_000, offset=50))
    home.away, home.topics[NAMES.commands] = frozenset(), topic(AFTER, 1_000)
    await home.run()
    assert (waiting(home), lent(home), passed(home, FORMER)) == ({}, False, [])
    assert [(each.outcome, each.partition, each.offset) for each in home.results] == [(Outcome.REJECTED, HOME, 50)]


async def asked(home: Partition, former: Partition, *headers: Any, **fields: Any) -> None:
    """Have the partition of a key ask the former one about a command. What that answers waits."""
    await home.run(record(HOME, *headers, offset=50, **fields))
    await former.run(*passed(home, FORMER))
    assert (lent(home), waiting(former)) == (True, {HOME: 1})


@pytest.mark.parametrize("how", ["in a topic with the partition", "too large"])
async def test_who_asked_about_a_command_that_cannot_be_passed_back_does_not_wait_for_it_any_more(how: str) -> None:
    home, former = lane(HOME), lane(FORMER)
    former.away = frozenset({HOME})
    await asked(home, former, *ONCE, *ANSWER, value=b"n" * 2_000)
    former.away = frozenset()
    if how == "too large":
        former.topics[NAMES.commands] = topic(AFTER, 1_000)
    else:
        for each in (home, former):
            each.read_from("second", AFTER)
            grown(each, Partitioning(AFTER, secret=SECRET))
    await former.run()
    assert [each.outcome for each in former.results] == ([Outcome.REJECTED] if how == "too large" else [])
    assert waiting(former) == {}
    await home.run(*passed(former, HOME))
    assert (lent(home), home.table.pending) == (False, 0 if how == "too large" else 1)
    assert home.dead_letters == []


async def test_a_command_whose_asker_is_gone_is_carried_out_or_passed_on_all_the_same() -> None:
    home, former = lane(HOME), lane(FORMER)
    former.away = frozenset({HOME})
    await asked(home, former, *ONCE)
    replaced(former, BEFORE)
    cycle = await former.run()
    assert (former.table.pending, waiting(former), former.dead_letters) == (1, {}, [])
    assert len(cycle.stranded.dropped) == 1, "the news for the partition that asked"


@pytest.mark.parametrize("how", ["carried out", "passed on", "passed back", "too large", "condemned"])
async def test_a_command_from_another_partition_is_named_by_the_place_where_its_sender_put_it(how: str) -> None:
    home, former = lane(HOME), lane(FORMER)
    former.away = frozenset({HOME})
    await asked(home, former, *ONCE, *ANSWER, value=b"n" * 2_000)
    former.away = frozenset()
    condemned = {}
    if how == "too large":
        former.topics[NAMES.commands] = topic(AFTER, 1_000)
    else:
        replaced(former, {"passed on": OTHER, "passed back": AFTER}.get(how, BEFORE))
    if how == "condemned":
        cycle = await former.run(commits=False)
        condemned = dict.fromkeys(cycle.stranded.works, "it is not good")
    await former.run(condemned=condemned)
    places = [(each.partition, each.offset) for each in former.results]
    letters = [(each.source_partition, each.source_offset) for each in former.dead_letters]
    place = (HOME, 50)
    assert (places, letters) == {
        "carried out": ([place], []),
        "passed on": ([], []),
        "passed back": ([], []),
        "too large": ([place], [place]),
        "condemned": ([], [place]),
    }[how]
    if how.startswith("passed"):
        reader = lane(HOME if how == "passed back" else partition_for(MOVES, OTHER))
        replaced(reader, AFTER if how == "passed back" else OTHER)
        await reader.run(*passed(former, reader.number))
        assert [(each.outcome, each.partition, each.offset) for each in reader.results] == [(Outcome.SCHEDULED, *place)]
        assert reader.dead_letters == []


async def test_a_command_from_another_partition_keeps_its_generated_id_if_it_is_delayed_besides() -> None:
    offset = next(
        offset
        for offset in count(50)
        if (id := record_id(AT, HOME, offset).encode())
        and (partition_for(id, BEFORE), partition_for(id, AFTER)) == (FORMER, HOME)
    )
    home, former = lane(HOME), lane(FORMER)
    former.away = frozenset({HOME})
    await home.run(record(HOME, *ONCE, *ANSWER, key=None, offset=offset))
    await former.run(*passed(home, FORMER))
    delay(former, BEFORE)
    await former.run(*(record(FORMER, CANCEL, key=STAYS, offset=number) for number in range(2)))
    replaced(former, BEFORE)
    await former.run()
    assert (former.results, waiting(former)) == ([], {}), "it is delayed"
    for seconds in range(1, 4):
        await former.run(now=AT + 1_050 * seconds)
        if former.results:
            break
    (result,) = former.results
    assert (result.id, result.partition, result.offset) == (record_id(AT, HOME, offset), HOME, offset)
    assert (result.outcome, former.table.pending) == (Outcome.SCHEDULED, 1)


@pytest.mark.parametrize("exists", [True, False])
async def test_the_news_that_a_command_is_executed_elsewhere_is_sent_if_the_partition_exists(exists: bool) -> None:
    home, former = lane(HOME), lane(FORMER, Partitioning(BEFORE, secret=SECRET))
    await former.run(record(FORMER, *ONCE, offset=1))
    grown(former)
    former.read_from("first", AFTER)
    former.away = frozenset({HOME})
    await asked(home, former, ("schedule-command", b"pause"))
    if exists:
        replaced(former)
    else:
        replaced(former, BEFORE)
    cycle = await former.run()
    assert (waiting(former), len(cycle.stranded.dropped)) == ({}, 0 if exists else 1)
    await home.run(*passed(former, HOME))
    assert lent(home) is not exists


@pytest.mark.parametrize("dialect", ["native", "json"])
async def test_the_news_that_a_command_is_executed_elsewhere_needs_no_room_for_the_command(dialect: str) -> None:
    home, former = (Partition(FakeProducer(), number=number, of=AFTER, dialect=dialect) for number in (HOME, FORMER))
    grown(home)
    grown(former, Partitioning(BEFORE, secret=SECRET))
    await former.run(said(dialect, FORMER, "schedule", offset=1))
    grown(former)
    former.away, former.topics[CHANGELOG] = frozenset({HOME}), topic(AFTER, 1_500)
    await home.run(said(dialect, HOME, "pause", size=1_600, offset=50))
    await former.run(*passed(home, FORMER))
    assert (lent(home), waiting(former)) == (True, {HOME: 1})
    former.away = frozenset()
    await former.run()
    (told,) = passed(former, HOME)
    assert mark(told) == b"5:50:%d:.12" % AT
    await home.run(told)
    assert (lent(home), home.dead_letters) == (False, [])


def said(dialect: str, partition: int, name: str, *, size: int = 0, **fields: Any) -> Any:
    """Return a command for a schedule of a tenant in a dialect, with user headers of so many bytes."""
    headers = [("note", b"n" * size)]
    if dialect == "native":
        rule = ONCE if name == "schedule" else [("schedule-command", name.encode())]
        whose = ("schedule-id", b"an id"), ("schedule-tenant", b"acme")
        return record(partition, *whose, *rule, *headers, **fields)
    members = {"at": AT + HOUR, "target_topic": "reminders"} if name == "schedule" else {"command": name}
    value = msgspec.json.encode({"id": "an id", "tenant": "acme"} | members)
    return record(partition, *headers, value=value, **fields)


async def test_a_question_that_is_too_large_to_be_refused_by_who_asked_is_refused_here() -> None:
    home, former = lane(HOME), lane(FORMER)
    former.away, former.topics[CHANGELOG] = frozenset({HOME}), topic(AFTER, 1_500)
    await home.run(record(HOME, ("schedule-command", b"cancel"), *ANSWER, value=b"n" * 1_600, offset=50))
    question = passed(home, FORMER)
    former.tenants.book = TenantBook([Tenant(name="default", state=TenantState.DELETED)])
    await former.run(*question)
    assert [(each.outcome, each.offset) for each in former.results] == [(Outcome.REJECTED, 50)]
    assert (len(former.dead_letters), waiting(former)) == (1, {HOME: 1})
    former.away = frozenset()
    await former.run()
    await home.run(*passed(former, HOME))
    assert (lent(home), home.results, home.dead_letters) == (False, [], [])


async def test_the_news_that_nothing_is_left_to_move_is_only_for_the_topic_that_has_grown() -> None:
    former = lane(FORMER)
    former.away, former.handover = frozenset({0}), HandoverPass()
    await former.run()
    assert waiting(former) == {0: 1}
    replaced(former)
    cycle = await former.run()
    assert (waiting(former), written(former), len(cycle.stranded.dropped)) == ({}, [], 1)


async def test_what_cannot_be_sent_keeps_no_topic_from_settling() -> None:
    former = lane(FORMER)
    former.away, former.handover = frozenset({HOME}), HandoverPass()
    large = record(FORMER, ("schedule-command", b"cancel"), value=b"n" * 2_000, offset=2)
    await former.run(large, record(FORMER, *emptied(0), key=None, value=None, offset=3))
    await former.run(*(record(FORMER, *emptied(n), key=None, value=None, offset=3 + n) for n in (2, 3)))
    cycle = await former.run(now=AT + AGAIN_MS)
    assert (waiting(former), cycle.moving.is_settled()) == ({HOME: 2}, False)
    former.away, former.topics[NAMES.commands] = frozenset(), topic(AFTER, 1_000)
    await former.run(now=AT + AGAIN_MS)
    cycle = await former.run(now=AT + AGAIN_MS)
    assert (waiting(former), cycle.moving.is_settled()) == ({}, True)


def emptied(number: int) -> Headers:
    """Return the news of a former partition that it has nothing left to move."""
    return emptied_headers(Emptied(number, AFTER), SECRET)


def test_what_is_dropped_is_told_of_once_a_cycle(caplog: pytest.LogCaptureFixture) -> None:
    log_dropped(("commands", 3), [])
    log_dropped(("commands", 3), ["one"])
    log_dropped(("commands", 3), ["one", "two", "three"])
    told = [each.getMessage() for each in caplog.records]
    assert told == ["lane commands-3: one", "lane commands-3: one (2 more were dropped)"]
