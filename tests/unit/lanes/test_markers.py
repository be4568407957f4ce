"""What a lane does where a broker may have dropped the markers of its last transaction."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    TopicAuthorizationFailedError,
)
from support.outages import NO_LEADER, A, B, HoldingLane, entry
from support.partition import AT, NAMES

from light_scheduler.errors import BrokerError, CycleTimeout, LaneError
from light_scheduler.kafka.batches import Written
from light_scheduler.lanes.failures import markers as module
from light_scheduler.lanes.failures.attempt import Attempt
from light_scheduler.lanes.failures.markers import MOST_REMEMBERED, RECENT_S
from light_scheduler.model.place import Place
from light_scheduler.tables import layout
from light_scheduler.wire.state import identity_of


@pytest.fixture
async def lane() -> HoldingLane:
    return HoldingLane()


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
    lane: HoldingLane, committed_end: int, stable_end: int, commits: bool
) -> None:
    lane.holding.committed({A: committed_end}, "id")
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: stable_end}
    assert await lane.release() == [([A], commits)]
    assert await lane.release() == [], "once"


async def test_a_leader_that_was_lost_and_back_while_the_lane_slept_is_noticed_all_the_same(lane: HoldingLane) -> None:
    lane.ends = {A: 3}
    lane.holding.committed({A: 5}, "id")
    lane.outages.observe("reminders", {0: NO_LEADER}, AT)
    lane.come_back()
    lane.seconds += 1
    assert await lane.release() == [([A], True)]
    assert await lane.release() == [], "once"


async def test_a_transaction_that_began_after_the_leader_was_back_has_its_markers(lane: HoldingLane) -> None:
    lane.lose_leader(0)
    lane.come_back()
    lane.seconds += 1
    lane.holding.committed({A: 5}, "id")
    assert await lane.release() == []


async def test_what_was_aborted_before_a_leader_was_lost_is_settled_as_aborted(lane: HoldingLane) -> None:
    lane.fail(A)
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: 3}
    assert await lane.release() == [([A], False)]


async def test_places_to_commit_and_to_abort_are_settled_apart(lane: HoldingLane) -> None:
    lane.holding.committed({A: 5, B: 5}, "id")
    lane.lose_leader(0, 1)
    lane.come_back()
    lane.ends = {A: 3, B: 5}
    assert await lane.release() == [([A], True), ([B], False)]


async def test_nothing_is_settled_before_the_last_transaction_has_its_marker_in_the_changelog(
    lane: HoldingLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an abort elsewhere the coordinator would no longer tell that what is open in the changelog counts."""
    monkeypatch.setattr(module, "MARKER_S", 0.0)
    changelog = lane.context.changelog
    lane.producer.continuity = SimpleNamespace(begin=5, end=9)
    lane.fail(A)
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: 3}
    for untold in (None, KafkaError(), 4):  # of 4, another id's marker is late
        if untold is not None:
            lane.ends[changelog] = untold
        assert await lane.release() == []
        assert A in lane.outages, "it is left alone, and tried again"
        lane.outages.close([A])
    lane.ends[changelog] = 8
    with pytest.raises(LaneError, match="lacks the marker of the last transaction"):
        await lane.release()
    lane.ends[changelog] = 9
    assert await lane.release() == [([A], False)]


async def test_nothing_is_settled_while_a_place_is_away(lane: HoldingLane) -> None:
    lane.holding.committed({A: 5}, "id")
    lane.lose_leader(0)
    assert (await lane.release(), lane.asked) == ([], [])


async def test_what_failed_to_be_settled_is_settled_later(lane: HoldingLane) -> None:
    lane.holding.committed({A: 5}, "id")
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: 3}
    lane.producer.errors[A] = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await lane.release()
    lane.producer.errors.clear()
    assert (await lane.release(), lane.producer.tried) == ([], []), "it is left alone"
    lane.outages.close([A])
    assert await lane.release() == [([A], True)]


@pytest.mark.parametrize("commits", [True, False])
async def test_what_another_id_left_open_is_ended_under_that_id(lane: HoldingLane, commits: bool) -> None:
    lane.ends = {A: 3}
    if commits:
        lane.holding.committed({A: 5}, "id~1")
    else:
        lane.fail(A, transactional_id="id~1")
    lane.lose_leader(0)
    lane.come_back()
    assert await lane.release() == []
    assert lane.marked == [("id~1", A, commits)]
    assert lane.waits_for("a") is None


async def test_a_place_of_another_id_that_is_still_stuck_is_tried_again_and_stops_nobody(lane: HoldingLane) -> None:
    lane.ends = {A: 3}
    lane.holding.committed({A: 5}, "id~1")
    lane.lose_leader(0)
    lane.come_back()
    lane.producer.errors[A] = LaneError("id~1 is stuck")
    assert (await lane.release(), lane.marked) == ([], [])
    assert lane.waits_for("a") == A
    lane.producer.errors.clear()
    lane.outages.close([A])
    await lane.release()
    assert lane.marked == [("id~1", A, True)]


async def test_what_was_aborted_after_a_commit_is_not_committed_because_others_have_something_open(
    lane: HoldingLane,
) -> None:
    lane.ends = {A: 90}
    lane.holding.committed({A: 100}, "id")
    lane.seconds += 1
    lane.fail(A, written=[A])
    lane.seconds += 1
    lane.fail(A)
    lane.lose_leader(0)
    lane.come_back()
    assert await lane.release() == [([A], False)]


async def test_what_was_committed_is_not_taken_back_by_a_later_transaction_that_did_not_get_there(
    lane: HoldingLane,
) -> None:
    lane.ends = {A: 90}
    lane.holding.committed({A: 100}, "id")
    lane.seconds += 1
    lane.fail(A, B, written=[B])
    lane.lose_leader(0)
    lane.come_back()
    assert await lane.release() == [([A], True)]


@pytest.mark.parametrize("transactional_id", ["id", "id~1"])
async def test_what_others_have_open_commits_nothing_that_was_aborted_without_an_acknowledged_record(
    lane: HoldingLane, transactional_id: str
) -> None:
    lane.ends, lane.open_from = {A: 95, B: 95}, {A: 101, B: 98}
    lane.holding.committed({A: 100, B: 100}, transactional_id)
    lane.fail(A, B, transactional_id=transactional_id)
    lane.lose_leader(0, 1)
    lane.come_back()
    settled = [(place, commits) for places, commits in await lane.release() for place in places]
    settled += [(place, commits) for _, place, commits in lane.marked]
    assert sorted(settled) == [(A, False), (B, True)]


async def test_a_place_that_does_not_tell_what_is_open_is_left_alone_and_the_others_are_settled(
    lane: HoldingLane,
) -> None:
    lane.leave_open(0, 1)
    lane.open_from[A] = LaneError("no leader")
    assert await lane.release() == [([B], True)]
    assert lane.outages.places == [A]
    lane.open_from.clear()
    lane.outages.close([A])
    assert await lane.release() == [([A], True)]


async def test_leaders_are_asked_at_the_same_time(lane: HoldingLane, monkeypatch: pytest.MonkeyPatch) -> None:
    lane.leave_open(0, 1)
    all_are_asked = asyncio.Barrier(2)

    async def answers(_: Place) -> None:
        await all_are_asked.wait()

    monkeypatch.setattr(lane, "leader_answers", answers)
    async with asyncio.timeout(30):
        assert await lane.release() == [([A, B], True)]


async def test_what_a_commit_has_ended_says_nothing_of_what_comes_after_it(lane: HoldingLane) -> None:
    lane.ends = {A: 90}
    lane.fail(A, written=[A])
    lane.holding.committed({A: 100}, "id")
    lane.fail(A)
    lane.lose_leader(0)
    lane.come_back()
    assert await lane.release() == [([A], True)]


async def test_what_two_ids_left_open_in_a_place_is_ended_under_each(lane: HoldingLane) -> None:
    lane.ends = {A: 90}
    lane.holding.committed({A: 100}, "id~1")
    lane.seconds += 1
    lane.fail(A)
    lane.lose_leader(0)
    lane.come_back()
    lane.producer.errors[A] = LaneError("id~1 is stuck")
    with pytest.raises(LaneError):
        await lane.release()
    assert lane.waits_for("a") == A
    lane.producer.errors.clear()
    lane.outages.close([A])
    assert await lane.release() == [([A], False)]
    assert lane.marked == [("id~1", A, True)]
    assert lane.waits_for("a") is None


async def test_a_place_waits_until_what_each_id_left_there_is_ended(lane: HoldingLane) -> None:
    lane.ends = {A: 90}
    lane.holding.committed({A: 100}, "id")
    lane.holding.committed({A: 102}, "id~1")
    lane.lose_leader(0)
    lane.come_back()
    lane.stuck = {"id~1"}
    assert await lane.release() == [([A], True)]
    assert lane.waits_for("a") == A
    lane.stuck.clear()
    lane.outages.close([A])
    assert await lane.release() == []
    assert (lane.marked, lane.waits_for("a")) == ([("id~1", A, True)], None)


async def test_what_merely_did_not_answer_has_its_markers(lane: HoldingLane) -> None:
    lane.holding.committed({A: 5}, "id")
    lane.outages.suspect([A], "silent", AT)
    lane.waits()
    lane.outages.close([A])
    assert await lane.release() == []


@pytest.mark.parametrize(("since_s", "settled"), [(RECENT_S - 1, [([A], True)]), (RECENT_S, [])])
@pytest.mark.parametrize("how", ["committed", "failed"])
async def test_a_transaction_that_ended_long_before_the_outage_has_its_markers(
    lane: HoldingLane, since_s: float, settled: list[Any], how: str
) -> None:
    lane.ends = {A: 3}
    if how == "committed":
        lane.holding.committed({A: 5}, "id")
    else:
        lane.fail(A)
    lane.seconds += since_s
    lane.lose_leader(0)
    lane.come_back()
    expected = settled if how == "committed" else [(places, False) for places, _ in settled]
    assert await lane.release() == expected


async def test_places_in_other_topics_of_ours_are_not_settled(lane: HoldingLane) -> None:
    own = (NAMES.history, 0)
    lane.holding.committed({own: 5}, "id")
    lane.fail(own)
    lane.outages.observe(NAMES.history, {0: NO_LEADER}, AT)
    lane.waits()
    lane.outages.observe(NAMES.history, {}, AT)
    assert await lane.release() == []


# -- other partitions of the commands topic ---------------------------------------------------------------------------

OTHER = (NAMES.commands, 1)


def see_commands(lane: HoldingLane, *unavailable: int) -> None:
    """Have the metadata of the commands topic tell which of its partitions take nothing."""
    known = lane.topics[NAMES.commands]
    lane.outages.remember((NAMES.commands, partition) for partition in known.unavailable | set(unavailable))
    lane.topics[NAMES.commands] = known._replace(partitions=2, unavailable=frozenset(unavailable))


@pytest.mark.parametrize(("stable_end", "commits"), [(5, False), (3, True)])
async def test_what_was_passed_on_is_settled_before_anything_else_is_sent_there(
    lane: HoldingLane, stable_end: int, commits: bool
) -> None:
    lane.holding.committed({OTHER: 5, (NAMES.commands, 0): 5}, "id")
    assert lane.holding.unsettled() == frozenset()
    see_commands(lane, 1)
    assert lane.holding.unsettled() == {1}
    assert (await lane.release(), lane.asked) == ([], []), "it is away"
    see_commands(lane)
    lane.ends = {OTHER: stable_end}
    assert lane.holding.unsettled() == {1}
    assert await lane.release() == [([OTHER], commits)]
    assert lane.holding.unsettled() == frozenset()


async def test_what_was_passed_on_in_vain_is_settled_as_aborted(lane: HoldingLane) -> None:
    lane.fail(OTHER, written=[OTHER])
    see_commands(lane, 1)
    see_commands(lane)
    lane.ends = {OTHER: 3}
    assert await lane.release() == [([OTHER], False)]


async def test_a_partition_of_the_commands_topic_whose_leader_was_lost_unseen_is_settled(lane: HoldingLane) -> None:
    lane.holding.committed({OTHER: 5}, "id")
    see_commands(lane, 1)
    see_commands(lane)
    lane.seconds += 1
    lane.ends = {OTHER: 3}
    assert await lane.release() == [([OTHER], True)]


async def test_without_the_right_to_write_commands_those_for_a_partition_to_be_settled_wait_and_no_others(
    lane: HoldingLane,
) -> None:
    lane.holding.committed({OTHER: 5}, "id")
    see_commands(lane, 1)
    see_commands(lane)
    lane.ends = {OTHER: 3}
    lane.producer.errors[OTHER] = TopicAuthorizationFailedError({NAMES.commands})
    assert await lane.release() == []
    assert lane.holding.unsettled() == {1}
    assert lane.outages.places == [OTHER], "it is tried again later"
    assert not lane.topics.denied
    lane.producer.errors.clear()
    lane.outages.close([OTHER])
    assert await lane.release() == [([OTHER], True)]


async def test_the_commands_topic_is_watched_if_the_id_of_what_was_passed_on_is_stuck(lane: HoldingLane) -> None:
    lane.holding.committed({OTHER: 5, (NAMES.history, 0): 5}, "id")
    lane.holding.stuck()
    assert lane.topics.doubted == {NAMES.commands}


async def test_a_lane_with_nothing_held_and_nothing_to_settle_asks_nothing(lane: HoldingLane) -> None:
    lane.holding.committed({A: 5}, "id")
    assert await lane.release() == []
    assert lane.asked == []


@pytest.mark.parametrize("place", [A, OTHER])
@pytest.mark.parametrize("was_committed", [True, False])
@pytest.mark.parametrize("is_back", [True, False], ids=["decided when the leader is back", "decided before"])
async def test_a_transaction_whose_commit_was_not_answered_is_ended_as_the_changelog_says(
    lane: HoldingLane, was_committed: bool, place: Place, is_back: bool
) -> None:
    asked: list[tuple[int, int]] = []

    async def untouched(start: int, end: int) -> bool:
        asked.append((start, end))
        return not was_committed

    changelog = lane.context.changelog
    lane.holding.committed({place: 3}, "id")
    written = {changelog: Written(2, 40), place: Written(1, 5)}
    lane.seconds += 8
    lane.holding.failed(Attempt("id", places=[changelog, place], written=written), may_count=True)

    def lose_leader_and_come_back() -> None:
        for number in ([place[1]], []):
            if place == OTHER:
                see_commands(lane, *number)
            else:
                lane.outages.observe("reminders", dict.fromkeys(number, NO_LEADER), AT)
            lane.seconds += 4

    if is_back:
        lose_leader_and_come_back()
    await lane.holding.decide(untouched)
    await lane.holding.decide(untouched)
    assert asked == [(38, 40)], "once"
    lane.seconds += 1
    if not is_back:
        lose_leader_and_come_back()
    lane.ends = {place: 3}
    assert await lane.release() == [([place], was_committed)]


async def test_a_transaction_stays_undecided_until_the_changelog_has_been_read(lane: HoldingLane) -> None:
    answers: list[bool | BrokerError] = [BrokerError("no answer"), True]

    async def untouched(start: int, end: int) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    changelog = lane.context.changelog
    written = {changelog: Written(2, 40), A: Written(1, 5)}
    lane.holding.failed(Attempt("id", places=[changelog, A], written=written), may_count=True)
    with pytest.raises(BrokerError):
        await lane.holding.decide(untouched)
    await lane.holding.decide(untouched)
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: 3}
    assert await lane.release() == [([A], False)]


async def test_a_transaction_that_may_count_but_never_reached_the_changelog_does_not(lane: HoldingLane) -> None:
    lane.holding.failed(Attempt("id", places=[A], written={A: Written(1, 5)}), may_count=True)
    lane.lose_leader(0)
    lane.come_back()
    lane.ends = {A: 3}
    assert await lane.release() == [([A], False)]


# -- what goes wrong with a place is that place's matter --------------------------------------------------------------

C = ("answers", 0)


async def test_a_topic_without_the_right_to_write_keeps_nobody_else_waiting(lane: HoldingLane) -> None:
    lane.leave_open(0, 1)
    lane.leave_open(0, topic="answers")
    lane.producer.errors |= dict.fromkeys([A, B], TopicAuthorizationFailedError({"reminders"}))
    assert await lane.release() == [([C], True)]
    assert lane.topics["reminders"].is_denied
    assert (await lane.release(), lane.producer.tried) == ([], []), "it is not tried while it is denied"


async def test_what_is_open_where_the_right_is_missing_is_settled_before_anything_is_sent_there_again(
    lane: HoldingLane,
) -> None:
    lane.leave_open(0)
    lane.producer.errors[A] = TopicAuthorizationFailedError({"reminders"})
    await lane.release()
    assert await lane.release() == []
    assert (lane.waits_for("a"), lane.holding.loses(A)) == (None, False), "it is refused"

    lane.topics.denied.clear()
    await lane.topics.resolve({"reminders"})
    assert (lane.waits_for("a"), lane.holding.loses(A)) == (A, True), "not yet settled"
    lane.producer.errors.clear()
    assert await lane.release() == [([A], True)]
    assert (lane.waits_for("a"), lane.holding.loses(A)) == (None, False)


async def test_what_waited_where_the_right_is_missing_is_given_back_to_be_refused(lane: HoldingLane) -> None:
    lane.leave_open(0)
    waiting = entry("a")
    lane.table.held.pass_over(A, "acme", layout.index_key(waiting, identity_of(waiting)))
    lane.outages.suspect([A], "silent", AT)
    await lane.release()
    assert lane.table.held.places == [A]
    lane.outages.close([A])
    lane.producer.errors[A] = TopicAuthorizationFailedError({"reminders"})
    await lane.release()
    assert lane.table.held.places == []


async def test_of_several_places_the_one_that_cannot_be_settled_is_found_and_left_alone(lane: HoldingLane) -> None:
    lane.leave_open(0, 1, 2)
    lane.producer.errors[B] = CycleTimeout("no answer")
    with pytest.raises(CycleTimeout):
        await lane.release()
    assert lane.producer.tried == [[A, B, ("reminders", 2)]]
    settled = []
    lane.outages.close([A, B, ("reminders", 2)])
    with pytest.raises(CycleTimeout):
        await lane.release()
    settled = [*lane.producer.settled, *await lane.release()]
    assert sorted(places for places, _ in settled) == [[A], [("reminders", 2)]]
    assert all(len(places) == 1 for places in lane.producer.tried)
    assert lane.outages.places == [B]
    assert lane.outages.failures(B) > lane.outages.failures(A), "it waits longer each time"


@pytest.mark.parametrize(
    "error", [ProducerFenced(), InvalidProducerEpoch(), InvalidTxnState(), OutOfOrderSequenceNumber()], ids=repr
)
async def test_what_is_wrong_with_the_producer_is_no_fault_of_the_place(lane: HoldingLane, error: Exception) -> None:
    lane.leave_open(0)
    lane.producer.errors[A] = error
    with pytest.raises(type(error)):
        await lane.release()
    assert lane.outages.places == []
    lane.producer.errors.clear()
    assert await lane.release() == [([A], True)]


async def test_a_place_whose_end_cannot_be_looked_up_is_left_alone_and_the_others_are_settled(
    lane: HoldingLane,
) -> None:
    lane.leave_open(0, 1)
    lane.ends[A] = OffsetOutOfRangeError()
    assert await lane.release() == [([B], True)]
    assert lane.outages.places == [A]
    lane.ends[A] = 3
    lane.outages.close([A])
    assert await lane.release() == [([A], True)]


async def test_a_place_that_does_not_say_where_it_ends_is_asked_again(lane: HoldingLane) -> None:
    lane.leave_open(0, 1)
    del lane.ends[A]
    assert await lane.release() == [([B], True)]
    lane.ends[A] = 3
    assert await lane.release() == [([A], True)]


async def test_a_place_whose_topic_is_not_known_any_more_is_looked_up(lane: HoldingLane) -> None:
    lane.leave_open(0)
    lane.topics.forgotten["reminders"] = lane.topics.pop("reminders")
    assert await lane.release() == [([A], True)]


@pytest.mark.parametrize("partitions", [0, 1], ids=["the topic is gone", "the partition is"])
async def test_in_a_place_that_is_gone_there_is_nothing_to_settle(lane: HoldingLane, partitions: int) -> None:
    lane.leave_open(1)
    lane.topics["reminders"] = lane.topics["reminders"]._replace(
        partitions=partitions, refusal=None if partitions else "topic reminders does not exist"
    )
    assert (await lane.release(), lane.producer.tried) == ([], [])
    assert not lane.holding.loses(B)


async def test_what_was_committed_is_not_forgotten_while_it_cannot_be_settled(lane: HoldingLane) -> None:
    lane.leave_open(0)
    lane.producer.errors[A] = TopicAuthorizationFailedError({"reminders"})
    await lane.release()
    lane.seconds += RECENT_S
    lane.holding.committed({("answers", partition): 5 for partition in range(MOST_REMEMBERED + 1)}, "id")
    lane.producer.errors.clear()
    lane.topics.denied.clear()
    await lane.topics.resolve({"reminders"})
    assert await lane.release() == [([A], True)]
