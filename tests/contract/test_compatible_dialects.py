"""What holds for the dialects of other schedulers: their producers and consumers notice no difference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.foreign import (
    FOREIGN,
    LIGHT4J_CLASS_VALUE,
    LIGHT4J_VALUE,
    Foreign,
    etf1_headers,
    karafka_headers,
    record,
    skyuk_avro,
    skyuk_json,
    task,
    task_key,
)
from support.partition import AT, HOUR, NAMES, PARTITION, Partition
from support.producing import FakeProducer
from support.tables import by_id

from light_scheduler.model import Outcome
from light_scheduler.settings.values import DIALECTS
from light_scheduler.tables import MemoryStore
from light_scheduler.wire import dialect_named, partition_for
from light_scheduler.wire.dialects.compatible import CompatibleDialect

DAY = 24 * HOUR
DUE = AT + HOUR

every = pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)


def of(foreign: Foreign, producer: FakeProducer) -> Partition:
    return Partition(producer, dialect=foreign.dialect)


def messages(partition: Partition) -> list[tuple[bytes | None, bytes | None, Any]]:
    return [(sent.key, sent.value, list(sent.headers)) for sent in partition.sent("reminders")]


def test_every_dialect_that_a_setting_may_name_is_one() -> None:
    assert [dialect_named(name).name for name in DIALECTS] == list(DIALECTS)
    assert {foreign.dialect for foreign in FOREIGN.values()} == set(DIALECTS) - {"native", "json"}


# -- what is delivered ------------------------------------------------------------------------------------------------


@every
async def test_a_message_is_delivered_at_its_time_as_its_consumers_expect_it(
    foreign: Foreign, producer: FakeProducer
) -> None:
    partition = of(foreign, producer)
    sent = foreign.schedule(DUE, b"payload", 42, AT)
    assert (await partition.run(sent)).outcomes == {Outcome.SCHEDULED: 1}
    await partition.run(now=DUE - 1)
    assert messages(partition) == []
    await partition.run(now=DUE)
    assert messages(partition) == [foreign.expected(DUE, b"payload", sent)]
    await partition.run(now=DUE + DAY)
    assert messages(partition) == []


@every
def test_a_message_tells_of_its_schedule_unless_its_dialect_leaves_no_traces(foreign: Foreign) -> None:
    dialect = dialect_named(foreign.dialect)
    assert isinstance(dialect, CompatibleDialect)
    traced = dialect.traced(*foreign.expected(DUE, b"payload", foreign.schedule(DUE, b"payload", 42, AT)))
    assert (traced is not None) == dialect.leaves_traces
    if traced is not None:
        assert (traced.tenant, traced.id) == (foreign.tenant, "a")
        assert traced.topic in (None, NAMES.commands)
        assert traced.partition in (None, PARTITION)


@every
async def test_an_update_to_a_later_day_never_fires_at_the_old_time(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    await partition.run(foreign.schedule(DUE, b"old", 42, AT))
    later = foreign.schedule(DUE + DAY, b"new", 43, AT)
    assert (await partition.run(later)).outcomes == {Outcome.UPDATED: 1}
    await partition.run(now=DUE)
    assert messages(partition) == []
    await partition.run(now=DUE + DAY)
    assert messages(partition) == [foreign.expected(DUE + DAY, b"new", later)]


@every
async def test_an_update_to_an_earlier_time_fires_then_and_only_then(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    sooner = foreign.schedule(DUE, b"new", 43, AT)
    await partition.run(foreign.schedule(DUE + DAY, b"old", 42, AT), sooner)
    await partition.run(now=DUE)
    assert messages(partition) == [foreign.expected(DUE, b"new", sooner)]
    await partition.run(now=DUE + DAY)
    assert messages(partition) == []


@every
@pytest.mark.parametrize("ending", ["cancel", "tombstone"])
async def test_what_is_cancelled_or_told_to_be_over_is_not_delivered(
    foreign: Foreign, ending: str, producer: FakeProducer
) -> None:
    partition = of(foreign, producer)
    await partition.run(foreign.schedule(DUE, b"payload", 42, AT))
    end = foreign.cancel if ending == "cancel" else foreign.tombstone
    assert (await partition.run(end(43))).outcomes == {Outcome.CANCELLED: 1}
    await partition.run(now=DUE)
    assert messages(partition) == []


@every
async def test_a_cancel_that_is_read_with_what_is_due_comes_first(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    await partition.run(foreign.schedule(DUE, b"payload", 42, AT))
    await partition.run(foreign.cancel(43), now=DUE)
    assert messages(partition) == []


@every
async def test_the_end_of_what_is_not_pending_is_no_error(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    assert (await partition.run(foreign.tombstone(42), foreign.cancel(43))).outcomes == {Outcome.NOT_FOUND: 2}
    assert partition.dead_letters == []


@every
async def test_an_id_can_be_scheduled_again_after_its_end(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    again = foreign.schedule(DUE, b"again", 44, AT)
    await partition.run(foreign.schedule(DUE, b"payload", 42, AT), foreign.cancel(43), again)
    await partition.run(now=DUE)
    assert messages(partition) == [foreign.expected(DUE, b"again", again)]


@every
async def test_nothing_is_delivered_twice_after_a_restart(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    sent = foreign.schedule(DUE, b"payload", 42, AT)
    await partition.run(sent)
    partition.restart(MemoryStore(), now=AT)
    await partition.run(now=DUE, applies=False)  # committed, and then the worker is killed
    assert messages(partition) == [foreign.expected(DUE, b"payload", sent)]
    partition.restart(MemoryStore(), now=DUE)
    await partition.run(now=DUE + DAY)
    assert messages(partition) == []


@every
async def test_what_became_due_while_no_worker_ran_is_delivered(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    sent = foreign.schedule(DUE, b"payload", 42, AT)
    await partition.run(sent, now=DUE + 60_000)
    assert messages(partition) == [foreign.expected(DUE, b"payload", sent)]


@every
async def test_a_record_stays_in_the_partition_that_its_sender_chose(foreign: Foreign, producer: FakeProducer) -> None:
    for number in range(3):
        partition = Partition(producer, number=number, of=3, dialect=foreign.dialect)
        cycle = await partition.run(foreign.schedule(DUE, b"payload", 42, AT))
        assert (cycle.forwarded, partition.sent(NAMES.commands)) == (0, [])
        await partition.run(now=DUE)
        assert len(messages(partition)) == 1


@every
async def test_commands_in_the_json_form_control_what_is_pending(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    await partition.run(foreign.schedule(DUE, b"payload", 42, AT))
    asked = {"command": "cancel", "id": "a", "tenant": foreign.tenant, "reply_topic": "answers"}
    content_type = ("content-type", b"application/vnd.light-scheduler.command+json")
    cycle = await partition.run(record(b"a", json.dumps(asked).encode(), [content_type], offset=43))
    assert cycle.outcomes == {Outcome.CANCELLED: 1}
    assert [result.outcome for result in partition.results] == [Outcome.CANCELLED]


@every
async def test_bulk_commands_are_refused(foreign: Foreign, producer: FakeProducer) -> None:
    partition = of(foreign, producer)
    content_type = ("content-type", b"application/vnd.light-scheduler.command+json")
    await partition.run(record(b"a", b'{"command": "cancel", "id": "*"}', [content_type]))
    assert [(letter.field, "native or json" in letter.reason) for letter in partition.dead_letters] == [("id", True)]


async def test_an_id_that_ends_in_a_star_is_that_of_one_schedule_if_its_version_is_named(
    producer: FakeProducer,
) -> None:
    partition = Partition(producer, dialect="etf1")
    for number, key in enumerate((b"a*", b"ab")):
        await partition.run(record(key, b"payload", etf1_headers(DUE), offset=number))
    schedule = partition.table.get("default", "a*")
    assert schedule is not None
    content_type = ("content-type", b"application/vnd.light-scheduler.command+json")
    asked = {"command": "cancel", "id": "a*", "expected_version": schedule.schedule.version}
    await partition.run(record(b"a*", json.dumps({**asked, "labels": "x=y"}).encode(), [content_type], offset=42))
    assert [letter.field for letter in partition.dead_letters] == ["labels"]
    cycle = await partition.run(record(b"a*", json.dumps(asked).encode(), [content_type], offset=43))
    assert cycle.outcomes == {Outcome.CANCELLED: 1}
    assert [each.schedule.id for each in by_id(partition.table, "default")] == ["ab"]


@pytest.mark.parametrize("dialect", ["native", "json"])
async def test_in_topics_of_our_own_a_star_selects_several_whatever_version_is_named(
    producer: FakeProducer, dialect: str
) -> None:
    partition = Partition(producer, dialect=dialect)
    content_type = ("content-type", b"application/vnd.light-scheduler.command+json")
    await partition.run(record(b"a", b'{"command": "cancel", "id": "a*", "expected_version": 1}', [content_type]))
    assert [letter.field for letter in partition.dead_letters] == ["expected_version"]


# -- times that have passed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "late", "field"),
    [
        ("etf1", 999, None),
        ("etf1", 1_000, None),  # it waited in the topic
        ("karafka", 10_000, None),
        ("karafka", 11_000, "schedule_target_epoch"),
        ("skyuk, JSON", 1, None),
        ("skyuk, JSON", AT, None),
        ("skyuk, Avro", AT + 1, None),
    ],
)
async def test_a_time_that_has_passed_is_taken_or_refused_as_its_senders_expect(
    name: str, late: int, field: str | None, producer: FakeProducer
) -> None:
    foreign = FOREIGN[name]
    partition = of(foreign, producer)
    sent = foreign.schedule(AT - late, b"payload", 42, AT)
    if name == "etf1" and late < 1_000:  # the same second
        sent = foreign.schedule(AT, b"payload", 42, AT + late)
    await partition.run(sent, now=AT + 5_000)
    assert [letter.field for letter in partition.dead_letters] == ([] if field is None else [field])
    assert len(messages(partition)) == (field is None)


@pytest.mark.parametrize(("waited", "is_refused"), [(0, True), (1_000, True), (1_001, False)])
async def test_etf1_fires_what_was_past_when_it_was_written_only_if_it_waited_in_the_topic(
    waited: int, is_refused: bool, producer: FakeProducer
) -> None:
    partition = of(FOREIGN["etf1"], producer)
    await partition.run(FOREIGN["etf1"].schedule(AT - 60_000, b"payload", 42, AT), now=AT + waited)
    assert [letter.field for letter in partition.dead_letters] == ["scheduler-epoch"] * is_refused
    assert len(messages(partition)) == (not is_refused)


async def test_a_task_whose_start_has_passed_goes_on_in_its_own_steps(producer: FakeProducer) -> None:
    partition = of(FOREIGN["light4j"], producer)
    every_two_minutes = {"timeUnit": "MINUTES", "time": 2}
    started = task(AT, frequency=every_two_minutes, start=AT - 3 * 60_000 + 59_999)  # in the minute AT - 3 min
    await partition.run(record(task_key(), started, []))
    assert partition.wakes_at == AT + 60_000
    await partition.run(now=AT + 60_000)
    delivered = task(AT, frequency=every_two_minutes, start=AT + 120_000)
    assert [value for _, value, _ in messages(partition)] == [delivered]
    assert partition.wakes_at == AT + 180_000


@pytest.mark.parametrize("started", [1, 2, 1_000])
@pytest.mark.parametrize(
    ("recorded_at", "first"), [(DUE - 1, DUE), (DUE, DUE), (DUE + 1, DUE + HOUR), (DUE + HOUR, DUE + HOUR)]
)
@pytest.mark.parametrize("name", ["light4j", "light4j, its classes"])
@pytest.mark.parametrize("is_plain", [True, False])
async def test_what_a_task_has_to_fire_in_the_millisecond_of_its_record_is_delivered_as_what_comes_later(
    name: str, started: int, recorded_at: int, first: int, is_plain: bool, producer: FakeProducer
) -> None:
    partition = of(FOREIGN[name], producer)
    schema = LIGHT4J_CLASS_VALUE if "classes" in name else LIGHT4J_VALUE
    given = task(AT, schema=schema, frequency={"timeUnit": "HOURS", "time": 1}, start=DUE - started * HOUR)
    partition.plain_paths = is_plain
    await partition.run(record(task_key(), given, [], timestamp=recorded_at), now=DUE + HOUR)
    assert [event.due for event in partition.history if event.event == "scheduled"] == [first]


@pytest.mark.parametrize("action", ["INSERT", "UPDATE"])
async def test_a_task_that_is_stored_again_around_a_firing_does_not_repeat_it(
    action: str, producer: FakeProducer
) -> None:
    partition = of(FOREIGN["light4j"], producer)
    given = task(AT, frequency={"timeUnit": "HOURS", "time": 1}, start=AT, action=action)
    await partition.run(record(task_key(), given, []))
    await partition.run(now=AT + HOUR)
    assert len(messages(partition)) == 1
    for late in (5, 0, -3):  # sent before the firing, with it, and by a clock that is ahead
        await partition.run(record(task_key(), given, [], timestamp=AT + HOUR - late), now=AT + HOUR + 1)
        assert (messages(partition), partition.wakes_at) == ([], AT + 2 * HOUR)


async def test_a_task_without_a_start_begins_with_the_next_unit(producer: FakeProducer) -> None:
    partition = of(FOREIGN["light4j"], producer)
    given = task(AT, frequency={"timeUnit": "SECONDS", "time": 10}, start=None)
    await partition.run(record(task_key(), given, [], timestamp=AT + 1), now=AT + 1)
    assert partition.wakes_at == AT + 11_000


async def test_a_task_repeats_until_it_is_deleted(producer: FakeProducer) -> None:
    partition = of(FOREIGN["light4j"], producer)
    await partition.run(record(task_key(), task(AT, frequency={"timeUnit": "DAYS", "time": 1}, start=AT), []))
    for day in (1, 2, 3):
        await partition.run(now=AT + day * DAY)
        assert len(messages(partition)) == 1
    await partition.run(record(task_key(), task(AT, action="DELETE", frequency=None), []), now=AT + 4 * DAY)
    assert messages(partition) == []
    assert partition.wakes_at is None


# -- what else they can say -------------------------------------------------------------------------------------------


async def test_a_target_without_a_key_gets_none(producer: FakeProducer) -> None:
    for name, headers in (("etf1", etf1_headers(DUE)[:2]), ("karafka", karafka_headers(DUE)[:4])):
        partition = of(FOREIGN[name], producer)
        await partition.run(record(b"a", b"", list(headers)))
        await partition.run(now=DUE)
        assert [(key, value) for key, value, _ in messages(partition)] == [(None, b"")]


@pytest.mark.parametrize("key", [b"\xff\xfe", b"a\x00b", b"base64:", b"base64:/w==", "žluť".encode(), b" a "])
@pytest.mark.parametrize("name", ["etf1", "karafka"])
async def test_any_key_is_an_id_and_comes_back_as_it_was(name: str, key: bytes, producer: FakeProducer) -> None:
    partition = of(FOREIGN[name], producer)
    headers = etf1_headers(DUE) if name == "etf1" else karafka_headers(DUE)
    await partition.run(record(key, b"x", headers), record(b"base64:another", b"y", headers, offset=43))
    await partition.run(record(key, b"x", headers, offset=44))
    await partition.run(now=DUE)
    source_key = "scheduler-key" if name == "etf1" else "schedule_source_key"
    assert [dict(given)[source_key] for _, _, given in messages(partition)] == [b"base64:another", key]


async def test_karafka_chooses_the_partition_of_the_target(producer: FakeProducer) -> None:
    partition = of(FOREIGN["karafka"], producer)
    chosen = [*karafka_headers(DUE), ("schedule_target_partition", b"3")]
    by_key = [*karafka_headers(DUE), ("schedule_target_partition_key", b"order-1")]
    await partition.run(record(b"a", b"x", chosen), record(b"b", b"x", by_key, offset=43))
    await partition.run(now=DUE)
    partitions = {sent.headers[-1][1]: sent.partition for sent in partition.sent("reminders")}
    assert partitions == {b"a": 3, b"b": partition_for(b"order-1", 4)}


async def test_karafka_dispatches_in_the_order_of_epoch_and_offset(producer: FakeProducer) -> None:
    partition = of(FOREIGN["karafka"], producer)
    due = [DUE + 1_000, DUE, DUE + 1_000, DUE]
    await partition.run(*(record(b"%d" % n, b"%d" % n, karafka_headers(at), offset=n) for n, at in enumerate(due)))
    await partition.run(now=DUE + 1_000)
    assert [value for _, value, _ in messages(partition)] == [b"1", b"3", b"0", b"2"]


@pytest.mark.parametrize("value", [skyuk_json(DUE, None), skyuk_avro(DUE, None)])
async def test_skyuk_schedules_a_tombstone_by_a_value_of_null(value: bytes, producer: FakeProducer) -> None:
    partition = of(FOREIGN["skyuk, JSON"], producer)
    await partition.run(record(b"a", value, []))
    await partition.run(now=DUE)
    assert messages(partition) == [(b"target-key", None, [("x", b"\xff")])]


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-01T01:00:00Z",
        "2026-01-01T06:30:00.000+05:30",
        "2026-01-01T01:00Z",  # Java leaves out seconds that are 0
        "2026-01-01T02:00+01:00",
        f"{DUE}",
        float(DUE),
    ],
)
async def test_skyuk_times_may_be_text_or_any_whole_number(time: object, producer: FakeProducer) -> None:
    partition = of(FOREIGN["skyuk, JSON"], producer)
    await partition.run(record(b"a", skyuk_json(time, headers=None), []))
    assert partition.wakes_at == DUE
