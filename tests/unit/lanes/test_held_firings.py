"""What a lane remembers of targets that cannot be written to, and what it does when they can."""

from __future__ import annotations

import pytest
from support.outages import NO_LEADER, A, B, HoldingLane, entry
from support.partition import AT, NAMES

from light_scheduler.kafka.refusals import TargetsStalledError
from light_scheduler.kafka.target_outages import FIRST_WAIT_S, WHOLE_TOPIC
from light_scheduler.lanes.context.lane_context import origin_key
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
    lane.refusals[origin_key(entry("a"))] = "it is too large"
    waits = lane.waits()
    assert waits is not None
    assert (waits(entry("a")), waits(entry("b"))) == (None, A)


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


# -- places on trial --------------------------------------------------------------------------------------------------


def test_a_partition_on_trial_gets_one_firing_in_a_cycle_and_the_others_wait(lane: HoldingLane) -> None:
    lane.put_on_trial(A)
    for _ in range(2):
        assert lane.sent(*map(entry, "abc")) == ["a"]
        assert lane.sent(*(entry(id, partition=1) for id in "de")) == ["d", "e"]


def test_what_is_known_to_be_refused_is_not_what_a_trial_sends(lane: HoldingLane) -> None:
    lane.put_on_trial(A)
    lane.refusals[origin_key(entry("a"))] = "it is too large"
    assert lane.sent(*map(entry, "abc")) == ["a", "b"]


def test_a_trial_is_another_tenants_turn_than_theirs_whose_records_were_refused(lane: HoldingLane) -> None:
    lane.put_on_trial(A, *[("acme", str(number)) for number in range(30)])
    waiting = [entry(str(number)) for number in range(30, 40)]
    assert lane.sent(*waiting, entry("good", tenant="zeta")) == ["good"]


def test_a_trial_is_another_schedules_turn_than_the_one_whose_records_were_refused(lane: HoldingLane) -> None:
    lane.put_on_trial(A, ("acme", "bad"))
    assert lane.sent(entry("bad"), entry("a"), entry("b")) == ["a"]
    assert lane.sent(entry("bad")) == ["bad"], "nobody else has anything"


def test_each_tenant_and_each_schedule_of_it_has_its_turn_at_a_trial(lane: HoldingLane) -> None:
    due = [entry(id, tenant=tenant) for tenant, ids in (("acme", "ab"), ("zeta", "cd"), ("mono", "e")) for id in ids]
    tenants = {each.schedule.id: each.schedule.tenant for each in due}
    lane.put_on_trial(A, ("acme", "a"))
    order = []
    for _ in range(6):
        (tried,) = lane.sent(*due)
        order.append(tried)
        lane.topics.trials.refused(A, [(tenants[tried], tried)])
    assert order == ["c", "e", "b", "d", "e", "a"]


def test_what_is_left_of_a_trial_has_its_turn_in_the_order_in_which_it_is_due(lane: HoldingLane) -> None:
    overlay = Overlay(lane.table)
    for each in (entry("a"), entry("b"), entry("c", tenant="zeta")):
        overlay.put(identity_of(each), each, encode_entry(each))
    overlay.apply(changelog_offset=1, complete_at=AT)
    lane.put_on_trial(A)
    overlay = Overlay(lane.table)
    scan = overlay.due(AT, 10, 1 << 20, waits=lane.waits())
    assert [each.schedule.id for each in scan.entries] == ["a", "c"], "the first of each tenant"


def test_a_tenant_that_was_not_refused_is_not_kept_waiting_for_long(lane: HoldingLane) -> None:
    lane.put_on_trial(A, ("acme", "bad"))
    lane.topics.leave_alone(A, "it refuses", 5)
    lane.seconds += FIRST_WAIT_S
    assert lane.sent(entry("a")) == []
    lane.seconds += FIRST_WAIT_S
    assert lane.outages.to_probe() == []
    assert lane.sent(entry("a"), entry("b", tenant="zeta")) == []
    lane.seconds += FIRST_WAIT_S
    assert lane.outages.to_probe() == [A]


async def test_a_record_that_a_place_took_ends_its_trial(lane: HoldingLane) -> None:
    lane.put_on_trial(A)
    lane.holding.committed({A: 7}, "id")
    assert lane.sent(*map(entry, "abc")) == ["a", "b", "c"]


# -- what does not answer ---------------------------------------------------------------------------------------------


def test_places_of_firings_are_suspected_at_once_and_those_of_answers_the_second_time(lane: HoldingLane) -> None:
    assert lane.holding.stalled(TargetsStalledError([A], [B], 2.0)) == [A]
    assert lane.holding.stalled(TargetsStalledError([], [B], 2.0)) == [B]


def test_a_place_of_answers_that_took_one_in_between_is_not_suspected(lane: HoldingLane) -> None:
    lane.holding.stalled(TargetsStalledError([], [B], 2.0))
    lane.holding.committed({B: 5}, "id")
    assert lane.holding.stalled(TargetsStalledError([], [B], 2.0)) == []


def test_the_topics_of_a_transaction_that_does_not_end_are_watched(lane: HoldingLane) -> None:
    lane.holding.committed({("long ago", 0): 1}, "id")
    lane.seconds += 1
    lane.holding.committed({A: 5, ("others", 1): 3, (NAMES.history, 0): 9}, "id")
    lane.holding.stuck()
    assert lane.topics.doubted == {A[0], "others"}
    lane.seconds += 1
    lane.fail(("aborted", 0))
    lane.topics.doubted.clear()
    lane.holding.stuck()
    assert lane.topics.doubted == {"aborted"}
