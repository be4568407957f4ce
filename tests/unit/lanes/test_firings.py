from __future__ import annotations

from collections import Counter

import pytest
from support.partition import (
    AT,
    CHANGELOG,
    HOUR,
    NAMES,
    PARTITION,
    TO_REMINDERS,
    Partition,
    command,
    due_at,
)

from light_scheduler.model import (
    EventType,
    Headers,
    HistoryEvent,
)
from light_scheduler.wire import (
    firing_headers,
    partition_for,
)
from light_scheduler.wire.state import (
    SCHEDULE_KIND,
    identity,
)


async def test_a_firing_is_delivered_byte_for_byte_and_leaves_a_tombstone_and_a_line_of_history(
    partition: Partition,
) -> None:
    await partition.run(
        command(
            due_at(AT + 1),
            *TO_REMINDERS,
            ("schedule-target-key-base64", b"//4="),
            ("trace", b"\xff"),
            ("trace", None),
            value=b"\x00\xff",
        )
    )
    entry = partition.table.get("default", "a")
    assert entry is not None
    cycle = await partition.run(now=AT + 8)
    (fired,) = partition.sent("reminders")
    assert (fired.key, fired.value, fired.timestamp) == (b"\xff\xfe", b"\x00\xff", AT + 8)
    assert fired.headers == firing_headers(entry, AT + 8, NAMES.commands.encode())
    assert fired.headers[:2] == [("trace", b"\xff"), ("trace", None)]
    assert [(record.key, record.value) for record in partition.sent(CHANGELOG)] == [
        (SCHEDULE_KIND + identity("default", "a"), None)
    ]
    assert partition.history == [
        HistoryEvent(EventType.FIRED, "default", "a", 1, AT + 1, AT + 8, 1, 1, "reminders", None, PARTITION)
    ]
    assert [entry.progress.due for entry in cycle.delivered] == [AT + 1]
    assert partition.dead_letters == []
    assert partition.table.get("default", "a") is None
    assert partition.table.pending == 0


async def test_a_command_that_is_due_at_once_is_delivered_in_its_own_cycle(partition: Partition) -> None:
    await partition.run(command(*TO_REMINDERS))
    assert [record.value for record in partition.sent("reminders")] == [b"payload"]
    assert [event.event for event in partition.history] == [EventType.SCHEDULED, EventType.FIRED]
    kept, tombstone = partition.sent(CHANGELOG)
    assert kept.value is not None
    assert tombstone.value is None


async def test_null_stays_null_and_empty_stays_empty(partition: Partition) -> None:
    await partition.run(
        command(due_at(AT), *TO_REMINDERS, ("schedule-target-key", None), value=None),
        command(due_at(AT), *TO_REMINDERS, ("schedule-target-key", b""), value=b"", key=b"b"),
    )
    assert {(record.key, record.value) for record in partition.sent("reminders")} == {(None, None), (b"", b"")}


@pytest.mark.parametrize(
    ("headers", "key", "expected"),
    [
        pytest.param([("schedule-target-partition", b"3")], b"a", 3, id="the partition that is given"),
        pytest.param([("schedule-target-partition-key", b"pk")], b"a", partition_for(b"pk", 4), id="partition key"),
        pytest.param([("schedule-target-partition-key", b"")], b"a", partition_for(b"", 4), id="an empty one too"),
        pytest.param([("schedule-target-key", b"tk")], b"a", partition_for(b"tk", 4), id="the target's key"),
        pytest.param([], b"a", partition_for(b"a", 4), id="the command's key"),
        pytest.param([("schedule-target-key", None)], b"a", partition_for(b"a", 4), id="without a key, the id"),
        pytest.param(
            [("schedule-target-key", None), ("schedule-id", b"the-id")],
            b"a",
            partition_for(b"the-id", 4),
            id="without a key, the id and not the command's key",
        ),
    ],
)
async def test_the_partition_of_a_firing_is_chosen_by(
    partition: Partition, headers: Headers, key: bytes, expected: int
) -> None:
    await partition.run(command(due_at(AT), *TO_REMINDERS, *headers, key=key))
    assert [record.partition for record in partition.sent("reminders")] == [expected]


def test_the_keys_above_choose_different_partitions() -> None:
    assert len({partition_for(key, 4) for key in (b"pk", b"", b"a", b"tk", b"the-id")}) > 2
    assert partition_for(b"", 4) != partition_for(b"a", 4)
    assert partition_for(b"the-id", 4) != partition_for(b"a", 4)


async def test_firings_of_a_partition_arrive_in_the_order_in_which_they_were_due(partition: Partition) -> None:
    to_one = [*TO_REMINDERS, ("schedule-target-partition", b"0")]
    await partition.run(
        *[
            command(due_at(AT - place), *to_one, value=b"%d" % place, key=b"%d" % place, offset=place)
            for place in range(5)
        ]
    )
    assert [record.value for record in partition.sent("reminders")] == [b"4", b"3", b"2", b"1", b"0"]


async def test_an_expired_firing_is_told_in_history_and_goes_nowhere(partition: Partition) -> None:
    await partition.run(command(due_at(AT), *TO_REMINDERS, ("schedule-ttl", b"1s")), now=AT - 1)
    cycle = await partition.run(now=AT + 1_001)
    assert [record.topic for record in partition.producer.records] == [CHANGELOG, NAMES.history]
    assert [(event.event, event.reason) for event in partition.history] == [
        (EventType.EXPIRED, "1001 ms after due; its time to live was 1000 ms")
    ]
    assert cycle.delivered == []
    assert partition.table.pending == 0


async def test_history_names_no_due_time_where_nothing_is_planned(partition: Partition) -> None:
    delay = [("schedule-every", b"1m"), ("schedule-mode", b"fixed-delay")]
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=b"once"), now=AT)
    await partition.run(command(*delay, *TO_REMINDERS, key=b"delay", offset=43), now=AT)
    await partition.run(now=AT + 60_000)
    await partition.run(
        command(("schedule-command", b"trigger"), key=b"once", offset=44),
        command(("schedule-command", b"pause"), key=b"delay", offset=45),
        now=AT + 60_007,
    )
    assert [(event.event, event.id, event.due) for event in partition.history] == [
        (EventType.UPDATED, "once", AT + 60_007),
        (EventType.PAUSED, "delay", None),
        (EventType.FIRED, "once", AT + 60_007),
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("allowed", [{}, {"a": 1}, {"a": 2}, {"a": 3, "b": 7}, {"a": 100}])
async def test_turns_of_a_series_stay_in_their_tenants_order_however_few_there_may_be_in_a_cycle(
    partition: Partition, limit: int, allowed: dict[str, int]
) -> None:
    def of(tenant: bytes) -> tuple[str, bytes]:
        return "schedule-tenant", tenant

    target: Headers = [*TO_REMINDERS, ("schedule-target-partition", b"0")]
    series: Headers = [("schedule-every", b"2000"), ("schedule-start", b"%d" % AT), ("schedule-misfire", b"all")]
    commands = []
    for tenant in (b"a", b"b"):
        commands.append(command(*series, *target, of(tenant), key=b"series"))
        commands += [command(due_at(AT + place * 1_000), *target, of(tenant), key=b"%d" % place) for place in range(10)]
    await partition.run(*commands, now=AT - 1)
    fired: list[tuple[str, int]] = []
    while len(fired) < 30:
        await partition.run(now=AT + 9_999, limit=limit, allowed=allowed)
        sent = [dict(record.headers) for record in partition.sent("reminders")]
        fired += [(headers["schedule-tenant"].decode(), int(headers["schedule-due"])) for headers in sent]
        assert 0 < len(sent) <= limit
        for who, most in Counter(headers["schedule-tenant"].decode() for headers in sent).items():
            assert most <= allowed.get(who, limit)
    for name in "ab":
        dues = [due - AT for each, due in fired if each == name]
        assert dues == sorted([*range(0, 10_000, 1_000), *range(0, 10_000, 2_000)])
