"""When the open copy of a partition's state is gone on with, and when it is thrown away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from aiokafka import TopicPartition
from support.counting import as_of_format_8, check_counts, old_rows
from support.tables import by_due
from support.waiting import eventually

from light_scheduler.clock import SettableClock
from light_scheduler.errors import BrokerError, StateError
from light_scheduler.kafka.clients import LaneClients
from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import Checkpoint, Overlay, ScheduleTable, changelog, local_copy, recovery
from light_scheduler.tables import standby as standby_module
from light_scheduler.tables.changelog import PartitionLogs
from light_scheduler.tables.local_copy import LocalCopy
from light_scheduler.tables.recovery import Following, Replaying
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.services import LaneServices
from light_scheduler.tables.standby import Standby
from light_scheduler.tables.store import Changes
from light_scheduler.tables.usable_copy import ChangelogFacts
from light_scheduler.wire.delayed_state import DelayedQueue, encode_queue, queue_key
from light_scheduler.wire.state import SCHEDULE_KIND, encode_entry, identity_of

AT, DAY = 1_767_225_600_000, 86_400_000
COMMANDS, CHANGELOG = TopicPartition("commands", 0), TopicPartition("changelog", 0)
REACHED = 7
FIRST = encode_queue(DelayedQueue(0, 1, 1))


class NothingNew:
    """Clients, and a reader, of a changelog that holds nothing beyond `REACHED`; up to `committed` it is committed."""

    committed = end = REACHED
    looked = 0

    def __init__(self) -> None:
        self.looked_often = asyncio.Event()

    def reader(self) -> NothingNew:
        return self

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.committed)

    async def log_end(self, _partition: TopicPartition) -> int:
        self.looked += 1
        if self.looked > 3:
            self.looked_often.set()
        return self.end

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def assign(self, partitions: list[TopicPartition]) -> None: ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...

    async def position(self, partition: TopicPartition) -> int:
        return REACHED


class More(NothingNew):
    """The same, with two records of one transaction that were written after the end was looked up."""

    at = REACHED

    def __init__(self) -> None:
        super().__init__()
        self.committed = self.end = REACHED + 1

    async def position(self, partition: TopicPartition) -> int:
        return self.at

    async def getmany(self, *, timeout_ms: int) -> dict[TopicPartition, list[Change]]:
        self.at += 2
        changes = [Change(REACHED, queue_key("a"), FIRST), Change(REACHED + 1, queue_key("b"), FIRST)]
        return {CHANGELOG: changes}


class Change(NamedTuple):
    """A record of a changelog."""

    offset: int
    key: bytes
    value: bytes | None


class Desk:
    """A copy in a folder, and what it is given to work with."""

    def __init__(self, folder: Path, kafka: NothingNew | None = None) -> None:
        self.clock = SettableClock(AT)
        self.asked: list[str] = []
        self.kafka = kafka or NothingNew()
        unused = cast(Any, None)
        services = LaneServices(
            clients=cast(LaneClients, self.kafka),
            group=unused,
            clock=self.clock,
            confirm=unused,
            changelog_facts=self._facts,
            new_timer=unused,
            make_room=unused,
            fail=unused,
        )
        self.copy = LocalCopy(PartitionLogs(COMMANDS, CHANGELOG), folder, services, lambda: False, is_lane=True)
        self.standby = LocalCopy(PartitionLogs(COMMANDS, CHANGELOG), folder, services, lambda: False)
        self.warm = ScheduleTable(RocksStore(folder))
        self.warm.write({}, Checkpoint(REACHED, 0, 0, "topic-1", AT))

    async def _facts(self, topic: str) -> ChangelogFacts:
        self.asked.append(topic)
        return ChangelogFacts("topic-1", DAY)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "lane")
    yield desk
    desk.copy.close()


async def test_counts_as_an_older_version_stored_them_are_renewed_before_the_copy_is_used(desk: Desk) -> None:
    overlay = Overlay(desk.warm)
    for number in range(3):
        each = Entry(Schedule("acme", f"{number}", 1, Once(AT), Target("t"), b"", [], 0, 0, AT), Progress(AT, 0))
        overlay.put(identity_of(each), each, encode_entry(each))
    overlay.apply(changelog_offset=REACHED, complete_at=AT)
    as_of_format_8(desk.warm.store)
    assert old_rows(desk.warm.store) == 1
    desk.warm.close()
    table, _ = await desk.copy.bring_up()
    assert old_rows(table.store) == 0
    check_counts(table)
    assert table.pending == 3


async def test_what_a_standby_has_open_is_gone_on_with(desk: Desk) -> None:
    desk.copy.adopt(desk.warm)
    table, restored = await desk.copy.bring_up()

    assert table is desk.warm
    assert restored.records == 0
    assert (await desk.copy.bring_up())[0] is desk.warm
    assert desk.asked == ["changelog"], "an open table belongs to the topic that it was opened for"
    assert desk.copy.rebuilds == 0


@pytest.mark.parametrize("ms", [DAY + 1, -DAY])
async def test_what_was_open_for_longer_than_tombstones_are_kept_or_for_nobody_knows_how_long_is_thrown_away(
    desk: Desk, ms: int
) -> None:
    desk.copy.adopt(desk.warm)
    desk.clock.advance(ms)

    table, _ = await desk.copy.bring_up()

    assert table is not desk.warm
    assert table.checkpoint.complete_at == desk.clock.now()
    assert desk.copy.rebuilds == 1


async def test_a_damaged_copy_that_cannot_be_removed_is_never_opened_again(desk: Desk, tmp_path: Path) -> None:
    desk.warm.close()
    (tmp_path / "lane").rename(tmp_path / "elsewhere")
    (tmp_path / "lane").symlink_to(tmp_path / "elsewhere")
    desk.copy.condemn()

    for _ in range(2):
        with pytest.raises(StateError, match="cannot delete the state folder"):
            await desk.copy.bring_up()
        assert desk.copy.table is None

    (tmp_path / "lane").unlink()
    table, _ = await desk.copy.bring_up()
    assert table.checkpoint.position == 0
    assert desk.copy.rebuilds == 1


async def test_a_copy_that_has_all_there_is_does_not_wait_for_the_marker_of_the_last_transaction(desk: Desk) -> None:
    desk.copy.adopt(desk.warm)
    desk.kafka.committed = REACHED - 3
    table, restored = await desk.copy.bring_up(are_markers_late=True)
    assert (table, table.checkpoint.changelog_offset, restored.records) == (desk.warm, REACHED, 0)


@pytest.mark.parametrize(
    ("end", "are_markers_late"),
    [
        pytest.param(REACHED + 1, True, id="something after it may count"),
        pytest.param(REACHED, False, id="no marker is on its way: Kafka has forgotten one"),
    ],
)
async def test_a_copy_is_no_lane_s_until_all_that_is_decided_can_be_read(
    desk: Desk, end: int, are_markers_late: bool
) -> None:
    desk.copy.adopt(desk.warm)
    desk.kafka.committed, desk.kafka.end = REACHED - 3, end
    bringing_up = asyncio.create_task(desk.copy.bring_up(are_markers_late=are_markers_late))
    await desk.kafka.looked_often.wait()
    assert not bringing_up.done()

    desk.kafka.committed = desk.kafka.end = REACHED
    table, _ = await bringing_up
    assert table.checkpoint.changelog_offset == REACHED


async def test_an_owner_that_waits_for_markers_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "MARKERS_TIMEOUT_S", 0.0)
    desk.copy.adopt(desk.warm)
    desk.kafka.committed, desk.kafka.end = REACHED - 3, REACHED + 1
    with pytest.raises(BrokerError, match="changelog-0: committed records end at 4, the log at 8"):
        await desk.copy.bring_up(are_markers_late=True)


async def test_a_changelog_that_ends_before_the_copy_is_no_lane_s(desk: Desk) -> None:
    desk.copy.adopt(desk.warm)
    desk.kafka.committed = desk.kafka.end = REACHED - 1
    with pytest.raises(BrokerError, match="ends at 6, before the offset 7"):
        await desk.copy.bring_up(are_markers_late=True)


@pytest.mark.parametrize("is_new", [False, True])
async def test_a_lane_takes_nothing_that_was_written_since_it_looked_where_its_changelog_ends(
    tmp_path: Path, *, is_new: bool
) -> None:
    """It has been fenced since, and could get half of a transaction."""
    desk = Desk(tmp_path / "lane", More())
    if is_new:
        desk.warm.close()
        desk.copy.condemn()
    else:
        desk.copy.adopt(desk.warm)
    table, restored = await desk.copy.bring_up()
    assert list(Overlay(table).others.delayed()) == ["a"]
    assert (restored.records, table.checkpoint.changelog_offset) == (1, REACHED + 1)
    desk.copy.close()


class Stalling(More):
    """The same; it notes whether a time-out runs while it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.stalls: list[asyncio.Timeout] = []
        self.asked: list[bool] = []

    @property
    def is_running(self) -> bool:
        return self.stalls[0].when() is not None

    async def position(self, partition: TopicPartition) -> int:
        self.asked.append(self.is_running)
        return await super().position(partition)


async def test_the_time_in_which_the_broker_has_to_answer_does_not_run_while_records_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka, seconds = Stalling(), 12_345.0
    timeout, take = asyncio.timeout, Replaying.take
    applying: list[bool] = []

    def watched(delay: float | None) -> asyncio.Timeout:
        stall = timeout(delay)
        if delay == seconds:
            kafka.stalls.append(stall)
        return stall

    async def taking(self: Replaying, records: Any) -> None:
        applying.append(kafka.is_running)
        await take(self, records)

    monkeypatch.setattr(recovery, "STALL_TIMEOUT_S", seconds)
    monkeypatch.setattr(asyncio, "timeout", watched)
    monkeypatch.setattr(Replaying, "take", taking)
    desk = Desk(tmp_path / "lane", kafka)
    desk.copy.adopt(desk.warm)
    await desk.copy.bring_up()
    desk.copy.close()
    assert (applying, kafka.asked) == ([False], [True, True])


async def test_a_standby_waits_for_nobody(desk: Desk) -> None:
    desk.kafka.end = REACHED + 5
    desk.standby.adopt(desk.warm)
    table, _ = await desk.standby.bring_up()
    assert table.checkpoint.changelog_offset == REACHED


class Quiet(NothingNew):
    """A changelog that nothing is written to."""

    async def getmany(self, *, timeout_ms: int) -> dict[TopicPartition, list[Change]]:
        return {}

    def last_stable_offset(self, _partition: TopicPartition) -> int:
        return REACHED


@pytest.mark.parametrize("back_ms", [30_000, 120_000])
async def test_a_standby_notes_at_once_that_it_is_complete_when_its_clock_was_set_back(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back_ms: int
) -> None:
    """Else its copy would count as younger than it is until the clock is again where it was."""
    monkeypatch.setattr(standby_module, "PACE_S", 0)
    desk.clock.set(AT - back_ms)
    standby = Standby(COMMANDS, CHANGELOG, desk.standby._services, tmp_path / "lane")
    standby._copy.adopt(desk.warm)
    standby._copy.facts = await desk._facts(CHANGELOG.topic)
    following = asyncio.create_task(standby._keep_up(desk.warm, cast(Any, Quiet())))
    await eventually(lambda: desk.warm.checkpoint.complete_at == AT - back_ms)
    await standby.close()
    await following


class Schedules(NothingNew):
    """A changelog of three schedules."""

    at, committed, end = 0, 3, 3

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.at = offset

    async def position(self, partition: TopicPartition) -> int:
        return self.at

    async def getmany(self, *, timeout_ms: int) -> dict[TopicPartition, list[Change]]:
        begin, self.at = self.at, 3
        return {CHANGELOG: [schedule_record(offset) for offset in range(begin, 3)]}


def schedule_record(offset: int) -> Change:
    schedule = Schedule("acme", f"s-{offset}", 1, Once(AT), Target("t"), b"x", [], 0, offset, AT)
    entry = Entry(schedule, Progress(AT, offset))
    return Change(offset, SCHEDULE_KIND + identity_of(entry), encode_entry(entry))


@pytest.mark.parametrize("may_block", [False, True])
@pytest.mark.parametrize("failing", [1, 2])
async def test_a_copy_that_an_error_met_while_it_was_filled_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_block: bool, failing: int
) -> None:
    """Files that are taken in are there at once, but not yet their counts."""
    desk = Desk(tmp_path / "lane", Schedules())
    desk.warm.close()
    desk.copy.condemn()
    monkeypatch.setattr(local_copy, "Following", partial(Following, may_block=may_block))
    write, writes = RocksStore.write, 0

    def write_but_once(store: RocksStore, changes: Changes) -> None:
        nonlocal writes
        writes += 1
        if writes == failing:
            raise RuntimeError("not carried out")
        write(store, changes)

    monkeypatch.setattr(RocksStore, "write", write_but_once)
    with pytest.raises(RuntimeError):
        await desk.copy.bring_up()
    assert desk.copy.table is None
    table, _ = await desk.copy.bring_up()
    assert table.pending == len(list(by_due(table, "acme"))) == sum(table.counts.by_day().values()) == 3
    desk.copy.close()
