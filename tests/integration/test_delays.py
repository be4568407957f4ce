"""Delay rules on a real broker: `Delays` as it runs in a worker, one or two of them, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, RecordsToDelete
from aiokafka.client import ConnectionGroup
from support.application import Application
from support.placing import delete_topic
from support.reading import Record, header, read_all, read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.delays import DelayLaneStatus, Delays, RuleFromConfigurationError
from light_scheduler.delays.positions import Positions
from light_scheduler.doctor.kafka_checks import check_delays
from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.model import DelayRule, Requester, RuleError
from light_scheduler.settings import load_settings
from light_scheduler.wire.delays import DelayPosition, encode_position

pytestmark = pytest.mark.integration

TIMEOUT_S = 45.0
BY = Requester("test", "192.0.2.7")


@asynccontextmanager
async def running(application: Application, **options: str) -> AsyncIterator[Delays]:
    """Run the delays of a worker."""
    settings = load_settings({**application.options, "session_timeout": "6s", **options}, environment={})
    delays = Delays(settings, SystemClock())
    await delays.start()
    try:
        yield delays
    finally:
        await delays.stop()


async def put(delays: Delays, rule: DelayRule) -> bool:
    """Add a rule as soon as the rules have been read."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                return await delays.put(rule, by=BY)
            except SchedulerError as error:
                if not error.retriable:
                    raise
                await asyncio.sleep(0.05)


async def topic(application: Application, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
    name = f"{application.settings.app_id}-{name}"
    await application.create_topic(name, partitions, **(configs or {}))
    return name


async def send(application: Application, topic: str, *values: bytes | None, **options: Any) -> None:
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    try:
        for value in values:
            await producer.send(topic, value, **{"key": b"k", "partition": 0, **options})
    finally:
        await stop_producer(producer)


async def read(application: Application, topic: str, count: int) -> list[Record]:
    return await read_until(application.bootstrap_servers, [topic], lambda records: len(records) >= count, TIMEOUT_S)


def runs(delays: Delays, rule: str) -> list[DelayLaneStatus]:
    return [lane for lane in delays.lanes() if lane.rule == rule and lane.state == "running"]


async def test_the_delays_of_a_chain_add_up_and_nothing_is_touched(application: Application) -> None:
    first, second, third = [await topic(application, name, 2) for name in "abc"]
    headers = [("x", b"1"), ("x", None), ("y", b""), ("ü", b"\xff")]
    async with running(application, delays=f"one={first}:300ms:{second}") as delays:
        assert await put(delays, DelayRule("two", second, 700, third)) is True
        for partition in (0, 1):
            await send(application, first, b"a", b"b", partition=partition, headers=headers)
        await send(application, first, b"c", key=None, partition=1)
        await send(application, first, None, partition=1)
        await read(application, third, 6)
        seen_at = SystemClock().now()
        await eventually(lambda: sum(lane.forwarded for lane in runs(delays, "two")) == 6)
    sent, received = [await read_all(application.bootstrap_servers, name) for name in (first, third)]

    def told(records: list[Record], added: int) -> set[tuple[object, ...]]:
        return {
            (record.partition, record.timestamp + added, record.key, record.value, tuple(record.headers))
            for record in records
        }

    assert told(received, 0) == told(sent, 1_000)
    assert len(received) == len(sent) == 6
    assert all(record.timestamp <= seen_at for record in received)
    assert [record.value for record in received if record.partition == 1] == [b"a", b"b", b"c", None]


async def test_what_was_aborted_in_the_source_is_not_forwarded(application: Application) -> None:
    source = await topic(application, "source")
    async with running(application, delays=f"one={source}:100ms:{application.target}"):
        producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers, transactional_id=source)
        async with producer:
            await producer.begin_transaction()
            await producer.send_and_wait(source, b"aborted")
            await producer.abort_transaction()
        await send(application, source, b"committed")
        assert [record.value for record in await read(application, application.target, 1)] == [b"committed"]


async def test_a_rule_waits_for_its_topics_and_says_so(application: Application) -> None:
    source, target = [f"{application.settings.app_id}-{name}" for name in ("late-source", "late-target")]
    async with running(application) as delays:
        await put(delays, DelayRule("one", source, 50, target))
        await topic(application, "late-source")
        await send(application, source, b"1", b"2", b"3")
        await eventually(lambda: any(lane.waiting for lane in delays.lanes()))
        assert [lane.reason for lane in delays.lanes()] == [f"topic {target} does not exist"]
        await topic(application, "late-target")
        assert [record.value for record in await read(application, target, 3)] == [b"1", b"2", b"3"]
        await eventually(lambda: [lane.reason for lane in delays.lanes()] == [None])


async def test_what_a_target_never_takes_is_a_dead_letter_in_its_place(application: Application) -> None:
    source = await topic(application, "source")
    small = await topic(application, "small", configs={"max.message.bytes": "1000"})
    compacted = await topic(application, "compacted", configs={"cleanup.policy": "compact"})
    async with running(
        application, delays=f"small={source}:50ms:{small},compacted={source}:50ms:{compacted}"
    ) as delays:
        await send(application, source, *(b"%d" % number for number in range(20)))
        await send(application, source, b"x" * 2_000, headers=[("kept", b"as it is")])
        await send(application, source, b"without a key", key=None)
        await send(application, source, b"last")
        await read(application, small, 22)
        await read(application, compacted, 22)
        letters = await read(application, application.settings.topics.dead_letters, 2)
        await eventually(lambda: all(lane.forwarded == 22 and lane.dead_letters == 1 for lane in delays.lanes()))
    values = [b"%d" % number for number in range(20)]
    received = {name: await read_all(application.bootstrap_servers, name) for name in (small, compacted)}
    assert [record.value for record in received[small]] == [*values, b"without a key", b"last"]
    assert [record.value for record in received[compacted]] == [*values, b"x" * 2_000, b"last"]
    assert len(letters) == 2
    too_large, keyless = sorted(letters, key=lambda letter: int(header(letter, "dead-letter-source-offset") or ""))
    assert (too_large.value, header(too_large, "kept")) == (b"x" * 2_000, "as it is")
    assert (header(too_large, "dead-letter-reason") or "").startswith("delay rule small: the record has")
    reason = header(keyless, "dead-letter-reason") or ""
    assert reason.startswith(f"delay rule compacted: topic {compacted} is compacted and takes no message without a key")
    assert header(keyless, "dead-letter-source-topic") == source


async def test_a_rule_that_was_removed_goes_on_where_it_stopped(application: Application) -> None:
    source = await topic(application, "source")
    rule = DelayRule("one", source, 50, application.target)
    async with running(application) as delays:
        await put(delays, rule)
        await send(application, source, b"before")
        await read(application, application.target, 1)
        assert await delays.remove("one", by=BY) is True
        assert await delays.remove("one", by=BY) is False
        await eventually(lambda: not delays.lanes())
        await send(application, source, b"meanwhile")
        await put(delays, DelayRule("one", source, 100, application.target))
        await read(application, application.target, 2)
    async with running(application) as delays:  # the rule was stored, and so was its position
        await send(application, source, b"after")
        await read(application, application.target, 3)
        assert [view.delay for view in delays.views()] == [100]
    received = await read_all(application.bootstrap_servers, application.target)
    assert [record.value for record in received] == [b"before", b"meanwhile", b"after"]


async def test_what_retention_took_away_is_counted_and_the_rest_goes_on(application: Application) -> None:
    source = await topic(application, "source")
    options = {"delays": f"one={source}:50ms:{application.target}"}
    async with running(application, **options):
        await send(application, source, b"0")
        await read(application, application.target, 1)
    await send(application, source, b"1", b"2", b"3")
    admin = AIOKafkaAdminClient(bootstrap_servers=application.bootstrap_servers)
    await admin.start()
    await admin.delete_records({TopicPartition(source, 0): RecordsToDelete(before_offset=3)})
    await admin.close()
    async with running(application, **options) as delays:
        assert [record.value for record in await read(application, application.target, 2)] == [b"0", b"3"]
        await eventually(lambda: [lane.expired for lane in delays.lanes()] == [2])


async def test_what_retention_took_away_before_anything_was_forwarded_is_counted(application: Application) -> None:
    source = await topic(application, "source")
    options = {"delays": f"one={source}:1h:{application.target}"}
    await send(application, source, b"0", b"1", b"2")
    async with running(application, **options) as delays:
        await eventually(lambda: [lane.next_due is not None for lane in runs(delays, "one")] == [True])
    admin = AIOKafkaAdminClient(bootstrap_servers=application.bootstrap_servers)
    await admin.start()
    await admin.delete_records({TopicPartition(source, 0): RecordsToDelete(before_offset=2)})
    await admin.close()
    async with running(application, **options) as delays:
        await eventually(lambda: [(lane.position, lane.expired) for lane in runs(delays, "one")] == [(2, 2)])


async def test_a_source_that_is_created_again_while_a_lane_reads_it_is_forwarded_once(application: Application) -> None:
    source = await topic(application, "source")
    options = {"delays": f"one={source}:50ms:{application.target}"}
    values = [b"%d" % number for number in range(20)]
    async with running(application, **options) as delays:
        await eventually(lambda: runs(delays, "one"))
        await asyncio.to_thread(delete_topic, application.bootstrap_servers, source)
        await topic(application, "source")
        await send(application, source, *values)
        await read(application, application.target, len(values))
    async with running(application, **options):
        await send(application, source, b"last")
        received = await read_until(
            application.bootstrap_servers,
            [application.target],
            lambda records: any(record.value == b"last" for record in records),
            TIMEOUT_S,
        )
    assert [record.value for record in received] == [*values, b"last"]


async def test_a_position_is_not_read_past_an_open_transaction_of_another_lane(application: Application) -> None:
    """What was committed behind it is hidden until it ends; the position before that would forward again."""
    name = application.settings.topics.delay_positions
    other = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers, transactional_id=name)
    async with other:
        await send(application, name, encode_position(DelayPosition(1, "t")), key=b"mine")
        await other.begin_transaction()
        await other.send_and_wait(name, b"{}", key=b"other", partition=0)
        await send(application, name, encode_position(DelayPosition(2, "t")), key=b"mine")
        reading = asyncio.create_task(Positions(application.bootstrap_servers, name).read(b"mine"))
        await asyncio.wait([reading], timeout=1.0)
        assert not reading.done()
        await other.abort_transaction()
        assert await reading == DelayPosition(2, "t")


@pytest.mark.soak
async def test_two_workers_share_the_partitions_and_a_live_rule_reaches_both(application: Application) -> None:
    source = await topic(application, "source", 4)
    async with running(application) as first:
        async with running(application) as second:
            await put(first, DelayRule("one", source, 50, application.target))
            await eventually(lambda: len(runs(first, "one")) == len(runs(second, "one")) == 2)
            for partition in range(4):
                await send(application, source, b"%d" % partition, partition=partition)
            await read(application, application.target, 4)
        await eventually(lambda: len(runs(first, "one")) == 4)
        admin = AIOKafkaAdminClient(bootstrap_servers=application.bootstrap_servers)
        await admin.start()
        await admin.create_partitions({source: NewPartitions(6)})

        async def are_there() -> bool:
            return len((await admin.describe_topics([source]))[0]["partitions"]) == 6

        await eventually(are_there)
        await admin.close()
        await send(application, source, b"4", b"4 again", partition=4, key=b"x")
        await read(application, application.target, 6)
    received = await read_all(application.bootstrap_servers, application.target)
    assert sorted(record.value for record in received) == [b"0", b"1", b"2", b"3", b"4", b"4 again"]
    assert [record.value for record in received if record.key == b"x"] == [b"4", b"4 again"]


async def test_a_partition_is_a_members_own_only_while_the_group_gives_it_to_it(application: Application) -> None:
    source, target = await topic(application, "source", 2), await topic(application, "target")
    async with running(application) as delays:
        assert await put(delays, DelayRule("later", source, 60_000, target))
        await eventually(lambda: len(runs(delays, "later")) == 2)
        members = delays._membership
        assert await members.confirm(TopicPartition(source, 1))
        assert not await members.confirm(TopicPartition(source, 2))
        assert not await members.confirm(TopicPartition(target, 0))
        await members.leave()
        assert not await members.confirm(TopicPartition(source, 1))


async def test_a_member_that_joins_is_none_and_its_join_goes_on(application: Application) -> None:
    source, target = await topic(application, "source"), await topic(application, "target")
    async with running(application) as delays:
        assert await put(delays, DelayRule("later", source, 60_000, target))
        await eventually(lambda: runs(delays, "later"))
        members, mine = delays._membership, TopicPartition(source, 0)
        other = AIOKafkaConsumer(
            target,
            bootstrap_servers=application.bootstrap_servers,
            group_id=application.settings.topics.delay_group,
            session_timeout_ms=30_000,
            heartbeat_interval_ms=25_000,  # so long it does not learn that others wait for it
        )
        async with other:
            await eventually(other.assignment)
            await eventually(lambda: members.confirm(mine))
            consumer: Any = members._consumer
            coordinator = consumer._coordinator
            connection = consumer._client._conns[coordinator.coordinator_id, ConnectionGroup.COORDINATION]
            consumer.subscribe(topics=[source, target], listener=members)
            await eventually(lambda: connection._requests and coordinator._heartbeat_task is None)
            assert not await members.confirm(mine)
            assert connection.connected()
        await eventually(lambda: members.confirm(mine))
        assert connection.connected()


async def test_rules_that_cannot_be_are_refused_and_leave_no_trace(application: Application) -> None:
    async with running(application, delays="one=a:5s:b") as delays:
        await put(delays, DelayRule("two", "b", 1_000, "c"))
        with pytest.raises(RuleError, match="creates a loop"):
            await delays.put(DelayRule("three", "c", 1_000, "a"), by=BY)
        with pytest.raises(RuleError, match="belongs to the scheduler"):
            await delays.put(DelayRule("three", application.settings.topics.delays, 1_000, "a"), by=BY)
        with pytest.raises(RuleFromConfigurationError):
            await delays.remove("one", by=BY)
        assert [view.name for view in delays.views()] == ["one", "two"]


async def test_a_source_that_forgets_before_its_delay_is_told_of(application: Application) -> None:
    source = await topic(application, "source", configs={"retention.ms": "60000"})
    async with running(application) as delays:
        await put(delays, DelayRule("one", source, 60_000, application.target))
        await eventually(lambda: delays.views()[0].warnings)
        assert "keeps records for 1m, and rule one needs them for 1m" in delays.views()[0].warnings[0]
    checks = await asyncio.to_thread(lambda: list(check_delays(application.settings)))
    assert [(check.status, check.detail) for check in checks] == [("warn", delays.views()[0].warnings[0])]
