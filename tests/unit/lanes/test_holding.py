"""What a lane remembers of targets that cannot be written to, and what it does when they can."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
from support.partition import AT, NAMES, Partition
from support.producing import FakeProducer

from light_scheduler.kafka.batches import TargetsStalledError
from light_scheduler.kafka.outages import WHOLE_TOPIC, Outages
from light_scheduler.lanes.context import Refusals, origin_key
from light_scheduler.lanes.holding import RECENT_S, Holding
from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.model.place import Place
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.tables.due_scan import Waits
from light_scheduler.wire.state import encode_entry, identity_of

A, B = ("reminders", 0), ("reminders", 1)
NO_LEADER = "it has no leader"


class Settling:
    """Takes the place of a lane's producer; `settled` is what it was asked to end."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.settled: list[tuple[list[Place], bool]] = []
        self.error: Exception | None = None

    async def settle(self, places: Collection[Place], *, commits: bool) -> None:
        if self.error is not None:
            raise self.error
        self.settled.append((sorted(places), commits))


class Topics(dict[str, Any]):
    outages: Outages


class Refused:
    """Takes the place of isolation."""

    def __init__(self) -> None:
        self.refusals: Refusals = {}
        self.on_trial: set[Place] = set()


class Lane:
    """A holding with what surrounds it; `ends` is where what is committed in places ends."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.outages = Outages(lambda: self.seconds)
        partition = Partition(FakeProducer())
        partition.topics = topics = Topics(partition.topics)
        topics.outages = self.outages
        self.context = partition.context
        self.ends: dict[Place, int] = {}
        self.asked: list[list[Place]] = []
        self.holding = Holding(self.context, self._last_stable)
        self.isolation: Any = Refused()
        self.producer: Any = Settling("id")
        self.table = ScheduleTable(MemoryStore())

    async def _last_stable(self, places: list[Place]) -> dict[Place, int]:
        self.asked.append(sorted(places))
        return {place: self.ends[place] for place in places}

    def waits(self) -> Waits | None:
        return self.holding.waits(self.isolation)

    def lose_leader(self, *partitions: int) -> None:
        """Have partitions lose their leader, and the lane notice."""
        self.outages.observe("reminders", dict.fromkeys(partitions, NO_LEADER), AT)
        self.waits()

    def come_back(self) -> None:
        self.outages.observe("reminders", {}, AT)

    async def release(self) -> list[tuple[list[Place], bool]]:
        """Return what was settled by a release."""
        self.producer.settled.clear()
        await self.holding.release(self.table, self.producer)
        settled: list[tuple[list[Place], bool]] = self.producer.settled
        return list(settled)


@pytest.fixture
async def lane() -> Lane:
    return Lane()


def entry(id: str, topic: str = "reminders", partition: int = 0) -> Entry:
    target = Target(topic, partition=partition)
    return Entry(Schedule("acme", id, 1, Once(AT), target, b"x", [], 0, 7, AT), Progress(AT, 7))


# -- what waits -------------------------------------------------------------------------------------------------------


def test_without_an_outage_nothing_is_asked_about_any_schedule(lane: Lane) -> None:
    assert lane.waits() is None


@pytest.mark.parametrize(
    ("topic", "partition", "waits_for"),
    [("reminders", 0, A), ("reminders", 1, None), ("answers", 0, None)],
)
def test_a_schedule_waits_for_the_partition_that_it_goes_to(
    lane: Lane, topic: str, partition: int, waits_for: Place | None
) -> None:
    lane.lose_leader(0)
    waits = lane.waits()
    assert waits is not None
    assert waits(entry("a", topic, partition)) == waits_for


def test_a_schedule_waits_for_a_topic_that_is_away_as_a_whole(lane: Lane) -> None:
    lane.lose_leader(WHOLE_TOPIC)
    waits = lane.waits()
    assert waits is not None
    assert waits(entry("a", partition=3)) == ("reminders", WHOLE_TOPIC)
    assert lane.holding.loses(B)


def test_what_is_refused_does_not_wait_for_a_partition_that_is_away(lane: Lane) -> None:
    lane.lose_leader(0)
    lane.isolation.refusals[origin_key(entry("a"))] = "it is too large"
    waits = lane.waits()
    assert waits is not None
    assert (waits(entry("a")), waits(entry("b"))) == (None, A)


def test_a_partition_on_trial_gets_one_firing_in_a_cycle_and_the_others_wait(lane: Lane) -> None:
    lane.isolation.on_trial.add(A)
    for _ in range(2):
        waits = lane.waits()
        assert waits is not None
        assert [waits(entry(id)) for id in "abc"] == [None, A, A]
        assert [waits(entry(id, partition=1)) for id in "de"] == [None, None]


def test_what_is_known_to_be_refused_is_not_what_a_trial_sends(lane: Lane) -> None:
    lane.isolation.on_trial.add(A)
    lane.isolation.refusals[origin_key(entry("a"))] = "it is too large"
    waits = lane.waits()
    assert waits is not None
    assert [waits(entry(id)) for id in "abc"] == [None, None, A]


def test_an_answer_does_not_wait_for_a_partition_that_is_away(lane: Lane) -> None:
    lane.lose_leader(0)
    assert (lane.holding.loses(A), lane.holding.loses(B)) == (True, False)


async def test_what_waits_goes_back_to_the_due_scan_when_its_place_is_back_and_not_before(lane: Lane) -> None:
    overlay = Overlay(lane.table)
    for each in (entry("a", partition=0), entry("b", partition=1)):
        overlay.put(identity_of(each), each, encode_entry(each))
    overlay.apply(changelog_offset=1, complete_at=AT)
    lane.lose_leader(0, 1)
    overlay = Overlay(lane.table)
    assert overlay.due(AT, 10, 1 << 20, waits=lane.waits()).entries == []
    overlay.settle_floors()

    def due() -> list[str]:
        return [each.schedule.id for each in Overlay(lane.table).due(AT, 10, 1 << 20, waits=lane.waits()).entries]

    await lane.release()
    assert (due(), sorted(lane.table.held.places)) == ([], [A, B])
    lane.outages.observe("reminders", {1: NO_LEADER}, AT)
    await lane.release()
    assert due() == ["a"]
    lane.come_back()
    await lane.release()
    assert due() == ["a", "b"]


# -- what does not answer ---------------------------------------------------------------------------------------------


def test_places_of_firings_are_suspected_at_once_and_those_of_answers_the_second_time(lane: Lane) -> None:
    assert lane.holding.stalled(TargetsStalledError([A], [B], 2.0)) == [A]
    assert lane.holding.stalled(TargetsStalledError([], [B], 2.0)) == [B]


def test_a_place_of_answers_that_took_one_in_between_is_not_suspected(lane: Lane) -> None:
    lane.holding.stalled(TargetsStalledError([], [B], 2.0))
    lane.holding.committed({B: 5}, "id")
    assert lane.holding.stalled(TargetsStalledError([], [B], 2.0)) == []


# -- what an earlier transaction may have left open -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("committed_end", "stable_end", "commits"),
    [
        pytest.param(5, 5, False, id="its marker was written"),
        pytest.param(5, 7, False, id="others wrote after it"),
        pytest.param(5, 3, True, id="its marker is missing"),
    ],
)
async def test_what_was_committed_before_a_leader_was_lost_is_settled_as_committed_if_its_marker_is_missing(
    lane: Lane, committed_end: int, stable_end: int, commits: bool
) -> None:
    lane.holding.committed({A: committed_end}, "id")
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: stable_end}
    assert await lane.release() == [([A], commits)]
    assert await lane.release() == [], "once"


async def test_what_was_aborted_before_a_leader_was_lost_is_settled_as_aborted(lane: Lane) -> None:
    lane.holding.failed([A], "id")
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: 3}
    assert await lane.release() == [([A], False)]


async def test_places_to_commit_and_to_abort_are_settled_apart(lane: Lane) -> None:
    lane.holding.committed({A: 5, B: 5}, "id")
    lane.lose_leader(0, 1)
    lane.come_back()
    lane.ends = {A: 3, B: 5}
    assert await lane.release() == [([A], True), ([B], False)]


async def test_nothing_is_settled_while_a_place_is_away(lane: Lane) -> None:
    lane.holding.committed({A: 5}, "id")
    lane.lose_leader(0)
    assert (await lane.release(), lane.asked) == ([], [])


async def test_what_failed_to_be_settled_is_settled_later(lane: Lane) -> None:
    lane.holding.committed({A: 5}, "id")
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: 3}
    lane.producer.error = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await lane.release()
    lane.producer.error = None
    assert await lane.release() == [([A], True)]


async def test_what_another_id_left_open_is_ended_by_whoever_fences_that(lane: Lane) -> None:
    lane.holding.committed({A: 5}, "id~1")
    lane.lose_leader(0)
    lane.come_back()
    assert (await lane.release(), lane.asked) == ([], [])


async def test_what_merely_did_not_answer_has_its_markers(lane: Lane) -> None:
    lane.holding.committed({A: 5}, "id")
    lane.outages.suspect([A], "silent", AT)
    lane.waits()
    lane.outages.close([A])
    assert await lane.release() == []


@pytest.mark.parametrize(("since_s", "settled"), [(RECENT_S - 1, [([A], True)]), (RECENT_S, [])])
@pytest.mark.parametrize("how", ["committed", "failed"])
async def test_a_transaction_that_ended_long_before_the_outage_has_its_markers(
    lane: Lane, since_s: float, settled: list[Any], how: str
) -> None:
    lane.ends = {A: 3}
    if how == "committed":
        lane.holding.committed({A: 5}, "id")
    else:
        lane.holding.failed([A], "id")
    lane.seconds += since_s
    lane.lose_leader(0)
    lane.come_back()
    expected = settled if how == "committed" else [(places, False) for places, _ in settled]
    assert await lane.release() == expected


async def test_places_in_topics_of_ours_are_not_settled(lane: Lane) -> None:
    own = (NAMES.history, 0)
    lane.holding.committed({own: 5}, "id")
    lane.holding.failed([own], "id")
    lane.outages.observe(NAMES.history, {0: NO_LEADER}, AT)
    lane.waits()
    lane.outages.observe(NAMES.history, {}, AT)
    assert await lane.release() == []


async def test_a_lane_with_nothing_held_and_nothing_to_settle_asks_nothing(lane: Lane) -> None:
    lane.holding.committed({A: 5}, "id")
    await lane.holding.release(SimpleNamespace(held=[]), lane.producer)  # type: ignore[arg-type]
    assert (lane.asked, lane.producer.settled) == ([], [])
