"""Tasks of light-4j come to the same by their short way as by the general one, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.foreign import record, task, task_key
from support.partition import AT, HOUR, NAMES, Partition, topic
from support.producing import FakeProducer
from support.tries import tries

from light_scheduler.lanes.plain_tasks import PlainTasks
from light_scheduler.lanes.tenancy import FixedTenancy
from light_scheduler.model import LATEST_INSTANT, Headers
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules

units = st.sampled_from(["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"])
times = st.sampled_from([1, 1, 2, 60, 24 * 365, 2**31 - 1, 0, -1])
starts = st.one_of(
    st.none(), st.integers(AT - HOUR, AT + HOUR), st.sampled_from([0, -1, AT, LATEST_INSTANT, LATEST_INSTANT + 1])
)
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


def played(records: list[Any], short_ways: bool, prepare: Callable[[Partition], None] = lambda _: None) -> Any:
    """Run a cycle over an empty table; return all that it sent, counted and stored."""

    async def play() -> Any:
        producer = FakeProducer()
        partition = Partition(producer, dialect="light4j")
        partition.short_ways = short_ways
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


@pytest.mark.parametrize("prepare", [lambda _: None, of_a_tenant_with_rules, with_little_room, with_small_limits])
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
