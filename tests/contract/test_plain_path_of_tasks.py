"""Tasks of light-4j come to the same by their short way as by the general one, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.foreign import LIGHT4J_CLASS_VALUE, LIGHT4J_KEY, LIGHT4J_VALUE, avro, record, task, task_key
from support.partition import AT, HOUR, NAMES, Partition, topic
from support.producing import FakeProducer
from support.tries import tries

from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.plain.tasks import PlainTasks
from light_scheduler.model import LATEST_INSTANT, Bounds, Headers, ScheduleCommand
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.wire.dialects.light4j import Light4jDialect
from light_scheduler.wire.schemas import Schemas

units = st.sampled_from(["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"])
times = st.sampled_from([1, 1, 2, 60, 24 * 365, 2**31 - 1, 0, -1])
starts = st.one_of(
    st.none(), st.integers(AT - HOUR, AT + HOUR), st.sampled_from([0, -1, AT, LATEST_INSTANT, LATEST_INSTANT + 1])
)
REGISTERED = [(LIGHT4J_VALUE, (1, 2)), (LIGHT4J_CLASS_VALUE, (1, 3))]
SCHEMAS = Schemas()
for id, schema in ((1, LIGHT4J_KEY), (2, LIGHT4J_VALUE), (3, LIGHT4J_CLASS_VALUE)):
    SCHEMAS.note(id, schema)
FOREIGN_HEADERS: list[Headers] = [
    [],
    [],
    [("x", b"\xff")],
    [("x", b"1"), ("x", None)],
    [("content-type", b"application/json")],
]
hosts = st.sampled_from(["networknt.com", "networknt.com", "acme", "no tenant", "", "h" * 70])
names = st.sampled_from(["a", "a", "b", "b*", "\u00e9", "", "n" * 70, "\n", '"'])


@st.composite
def commands(draw: st.DrawFn) -> list[Any]:
    """Draw commands of one cycle; most are plain."""
    drawn = []
    for offset in range(draw(st.integers(1, 6))):
        host, name = draw(hosts), draw(names)
        value = task(
            AT,
            draw(st.sampled_from(["payload", "", "p" * 200, "p" * 9_000])),
            host=host,
            name=name,
            action=draw(st.sampled_from(["INSERT", "INSERT", "INSERT", "UPDATE", "DELETE"])),
            frequency=draw(st.just({"timeUnit": draw(units), "time": draw(times)}) | st.none()),
            topic=draw(st.sampled_from(["reminders", "reminders", "..", "missing", NAMES.history])),
            start=draw(starts),
        )
        key = draw(st.just(task_key(name, host)) | st.sampled_from([task_key("other"), b"a", b"", None]))
        sent = draw(st.just(value) | st.sampled_from([value + b"\0", value[:-1], None, b"\0\0\0\0\1" + value]))
        at = draw(st.sampled_from([AT, AT, AT - HOUR, AT + HOUR, 0, -1]))
        drawn.append(record(key, sent, draw(st.sampled_from(FOREIGN_HEADERS)), offset=offset, timestamp=at))
    return drawn


def value_of(schema: dict[str, Any], id: int | None, **told: Any) -> bytes:
    """Return the value of a task; what is not told is as usual."""
    frequency = {"timeUnit": "HOURS", "time": 24}
    usual = {"host": "networknt.com", "action": "INSERT", "frequency": frequency, "topic": "reminders"}
    return avro(schema, {**usual, **told}, id)


data_keys = st.sampled_from(["key1", "\u00e9", ""])


@st.composite
def runs(draw: st.DrawFn) -> list[Any]:
    """Draw records of one sender: most are like the one before in all but name, start and data; some are damaged."""
    schema, ids = draw(st.sampled_from([(LIGHT4J_VALUE, (None, None)), *REGISTERED]))
    host, kind = draw(hosts), {"timeUnit": draw(units), "time": draw(times)}
    drawn = []
    for _ in range(draw(st.integers(2, 6))):
        if draw(st.integers(0, 4)) == 0:
            host, kind = draw(hosts), {"timeUnit": draw(units), "time": draw(times)}
        name = draw(names)
        start = draw(starts if schema is not LIGHT4J_CLASS_VALUE else starts.filter(lambda start: start is not None))
        data = draw(st.none() | st.dictionaries(data_keys, st.text(max_size=200), max_size=2))
        told = {"host": host, "name": name, "frequency": kind, "start": start, "data": data}
        key, value = task_key(name, host, ids[0]), value_of(schema, ids[1], **told)
        if draw(st.integers(0, 2)) == 0:
            at, cut = draw(st.integers(0, len(value))), draw(st.integers(0, 2))
            value = value[:at] + draw(st.binary(max_size=2)) + value[at + cut :]
        if draw(st.integers(0, 9)) == 0:
            key = key[:-1] + draw(st.binary(max_size=1))
        drawn.append(record(key, value, draw(st.sampled_from(FOREIGN_HEADERS)), timestamp=AT))
    return drawn


@given(runs())
@settings(max_examples=tries(400))
def test_a_task_is_the_same_whichever_were_read_before_it(records: list[Any]) -> None:
    dialect, forgetful = Light4jDialect(SCHEMAS), Light4jDialect(SCHEMAS)
    for each in records:
        short = dialect.task(each)
        forgetful._alike.forget()
        assert short == forgetful.task(each)
        if short is None:
            continue
        command = dialect.decode(each)
        assert isinstance(command, ScheduleCommand)
        assert (short.tenant, short.id, short.trigger, short.target) == (
            command.tenant, command.id, command.timing, command.target,
        )  # fmt: skip
        assert (short.payload, short.headers) == (command.payload, command.headers)
        assert command.bounds == Bounds(start=short.start)


@pytest.mark.parametrize(
    "change", [{}, {"start": AT - 1}, {"data": {"key1": "\u00e9" * 90}}, {"name": "b" * 63}], ids=str
)
@pytest.mark.parametrize(("schema", "ids"), [(LIGHT4J_VALUE, (None, None)), *REGISTERED])
def test_a_task_like_one_before_it_is_read_as_such(
    monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], ids: tuple[int | None, int | None], change: dict[str, Any]
) -> None:
    dialect = Light4jDialect(SCHEMAS)
    first: dict[str, Any] = {"host": "networknt.com", "name": "a", "start": AT, "data": {"key1": "x"}}
    between = {"host": "acme"}, {"frequency": {"timeUnit": "MINUTES", "time": 24}}, {"action": "UPDATE"}
    for each in (first, *(first | other for other in between)):
        key, value = task_key("a", each["host"], id=ids[0]), value_of(schema, ids[1], **each)
        assert dialect.task(record(key, value, [])) is not None
    monkeypatch.delattr(Light4jDialect, "_task")
    told = first | change
    key, value = task_key(told["name"], id=ids[0]), value_of(schema, ids[1], **told)
    read = dialect.task(record(key, value, []))
    assert read is not None
    assert (read.id, read.payload) == (told["name"], value)


def played(records: list[Any], plain_paths: bool, prepare: Callable[[Partition], None] = lambda _: None) -> Any:
    """Run a cycle over an empty table; return all that it sent, counted and stored."""

    async def play() -> Any:
        producer = FakeProducer()
        partition = Partition(producer, dialect="light4j")
        partition.plain_paths = plain_paths
        prepare(partition)
        cycle = await partition.run(*records, now=AT)
        seen = cycle.outcomes, cycle.events, partition.table.pending
        return sorted(producer.batches), seen, list(partition.table.store.scan(b"", b"\xff"))

    return asyncio.run(play())


def of_a_tenant_with_rules(partition: Partition) -> None:
    partition.tenants = FixedTenancy(TenantBook([Tenant(name="acme", rules=TenantRules(targets=("out.*",)))]))


def with_little_room(partition: Partition) -> None:
    partition.topics[NAMES.history] = topic(1, 200)


def with_small_limits(partition: Partition) -> None:
    partition.limits = replace(partition.limits, max_payload_bytes=100, max_id_bytes=3)


def with_room_for_few(partition: Partition) -> None:
    partition.limits = replace(partition.limits, max_pending_per_partition=2)


@pytest.mark.parametrize(
    "prepare", [lambda _: None, of_a_tenant_with_rules, with_little_room, with_small_limits, with_room_for_few]
)
@given(commands())
@settings(max_examples=tries(25))
def test_whatever_comes_the_short_way_leaves_what_the_general_one_does(
    prepare: Callable[[Partition], None], records: list[Any]
) -> None:
    short = played(records, True, prepare)
    assert short == played(records, False, prepare)
    event(f"pending: {short[1][2] > 0}")


@pytest.mark.parametrize("start", [AT + 5, AT - HOUR, None])
def test_a_task_of_a_new_name_takes_the_short_way(monkeypatch: pytest.MonkeyPatch, start: int | None) -> None:
    taken: list[int] = []
    run = PlainTasks.take_run

    def take_run(self: PlainTasks, records: list[Any]) -> None:
        before = len(records)
        run(self, records)
        taken.append(before - len(records))

    monkeypatch.setattr(PlainTasks, "take_run", take_run)
    names = ["a", "b", "a"]
    records = [
        record(task_key(name), task(AT, name=name, start=start), [], offset=3 - n) for n, name in enumerate(names)
    ]
    played(records[::-1], True)
    assert taken[0] == 2


@pytest.mark.parametrize("timestamp", [AT - HOUR, AT, AT + HOUR, 0])
@pytest.mark.parametrize("start", [AT - 2 * HOUR, AT - 1, AT, AT + 2 * HOUR, None])
def test_it_is_first_due_when_the_general_way_says(start: int | None, timestamp: int) -> None:
    value = task(AT, start=start, frequency={"timeUnit": "MINUTES", "time": 7})
    records = [record(task_key(), value, [], timestamp=timestamp)]
    assert played(list(records), True) == played(list(records), False)
