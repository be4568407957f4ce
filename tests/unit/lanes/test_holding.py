"""What a lane remembers of targets that cannot be written to, and what it does when they can."""

from __future__ import annotations

import pytest
from support.holding import NO_LEADER, A, B, HoldingLane, entry
from support.partition import AT

from light_scheduler.kafka.batches import TargetsStalledError
from light_scheduler.kafka.outages import WHOLE_TOPIC
from light_scheduler.lanes.context import origin_key
from light_scheduler.model.place import Place
from light_scheduler.tables import Overlay
from light_scheduler.wire.state import encode_entry, identity_of


@pytest.fixture
async def lane() -> HoldingLane:
    return HoldingLane()


# -- what waits -------------------------------------------------------------------------------------------------------


def test_without_an_outage_nothing_is_asked_about_any_schedule(lane: HoldingLane) -> None:
    assert lane.waits() is None


@pytest.mark.parametrize(
    ("topic", "partition", "waits_for"),
    [("reminders", 0, A), ("reminders", 1, None), ("answers", 0, None)],
)
def test_a_schedule_waits_for_the_partition_that_it_goes_to(
    lane: HoldingLane, topic: str, partition: int, waits_for: Place | None
) -> None:
    lane.lose_leader(0)
    waits = lane.waits()
    assert waits is not None
    assert waits(entry("a", topic, partition)) == waits_for


def test_a_schedule_waits_for_a_topic_that_is_away_as_a_whole(lane: HoldingLane) -> None:
    lane.lose_leader(WHOLE_TOPIC)
    waits = lane.waits()
    assert waits is not None
    assert waits(entry("a", partition=3)) == ("reminders", WHOLE_TOPIC)
    assert lane.holding.loses(B)


def test_what_is_refused_does_not_wait_for_a_partition_that_is_away(lane: HoldingLane) -> None:
    lane.lose_leader(0)
    lane.isolation.refusals[origin_key(entry("a"))] = "it is too large"
    waits = lane.waits()
    assert waits is not None
    assert (waits(entry("a")), waits(entry("b"))) == (None, A)


def test_a_partition_on_trial_gets_one_firing_in_a_cycle_and_the_others_wait(lane: HoldingLane) -> None:
    lane.isolation.on_trial.add(A)
    for _ in range(2):
        waits = lane.waits()
        assert waits is not None
        assert [waits(entry(id)) for id in "abc"] == [None, A, A]
        assert [waits(entry(id, partition=1)) for id in "de"] == [None, None]


def test_what_is_known_to_be_refused_is_not_what_a_trial_sends(lane: HoldingLane) -> None:
    lane.isolation.on_trial.add(A)
    lane.isolation.refusals[origin_key(entry("a"))] = "it is too large"
    waits = lane.waits()
    assert waits is not None
    assert [waits(entry(id)) for id in "abc"] == [None, None, A]


def test_an_answer_does_not_wait_for_a_partition_that_is_away(lane: HoldingLane) -> None:
    lane.lose_leader(0)
    assert (lane.holding.loses(A), lane.holding.loses(B)) == (True, False)


async def test_what_waits_goes_back_to_the_due_scan_when_its_place_is_back_and_not_before(lane: HoldingLane) -> None:
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


def test_places_of_firings_are_suspected_at_once_and_those_of_answers_the_second_time(lane: HoldingLane) -> None:
    assert lane.holding.stalled(TargetsStalledError([A], [B], 2.0)) == [A]
    assert lane.holding.stalled(TargetsStalledError([], [B], 2.0)) == [B]


def test_a_place_of_answers_that_took_one_in_between_is_not_suspected(lane: HoldingLane) -> None:
    lane.holding.stalled(TargetsStalledError([], [B], 2.0))
    lane.holding.committed({B: 5}, "id")
    assert lane.holding.stalled(TargetsStalledError([], [B], 2.0)) == []
