"""Which records are set aside after a refusal, for how long, and when a whole partition is held to refuse."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.errors import InvalidTimestampError, MessageSizeTooLargeError, TopicAuthorizationFailedError, UnknownError

from light_scheduler.kafka.half_open import MANY_REFUSED, Trials
from light_scheduler.kafka.refusals import RecordsRefusedError, UserRecord
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.context.lane_context import origin_key
from light_scheduler.lanes.failures.refused_record_search import FORGET_MS, RefusedRecordSearch
from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.model.place import Place

AT = 1_767_225_600_000
MINUTE = 60_000
PLACE = ("t", 3)


class Denials:
    """Takes the place of targets: what was denied, and which places were left alone and how often before."""

    def __init__(self) -> None:
        self.denied: list[tuple[str, str, float]] = []
        self.left_alone: list[tuple[Place, str, int]] = []
        self.trials = Trials(Outages(lambda: 1_000.0))

    def leave_alone(self, place: Place, reason: str, times: int) -> None:
        self.left_alone.append((place, reason, times))

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        self.denied.append((topic, refusal, seconds))


@pytest.fixture
def targets() -> Any:
    return Denials()


@pytest.fixture
def search(targets: Any) -> RefusedRecordSearch:
    return RefusedRecordSearch("commands-0", targets)


def entry(id: str, version: int = 1) -> Entry:
    return Entry(Schedule("acme", id, version, Once(AT), Target("t"), b"x", [], 0, 7, AT), Progress(AT, 7))


def refused(*culprits: UserRecord, error: Any = UnknownError, partition: int = 3) -> RecordsRefusedError:
    return RecordsRefusedError("t", error(), list(culprits), partition)


def test_a_single_record_that_is_refused_is_set_aside_until_a_cycle_has_dealt_with_it(
    search: RefusedRecordSearch,
) -> None:
    search.note(refused(entry("a")), AT)
    assert search.refusals.keys() == {origin_key(entry("a"))}
    assert (search.is_seeking, search.is_under_way) == (False, True)
    search.clear({origin_key(entry("b"))}, has_looked=True)
    assert search.refusals
    search.clear({origin_key(entry("a"))}, has_looked=True)
    assert (search.refusals, search.is_under_way) == ({}, False)


def test_of_several_each_is_suspected_and_none_set_aside(search: RefusedRecordSearch) -> None:
    search.note(refused(entry("a"), entry("b")), AT)
    assert search.refusals == {}
    assert (search.is_seeking, list(search.suspicious_topics)) == (True, ["t"])
    search.clear({origin_key(entry("a"))}, has_looked=True)
    assert search.is_seeking
    search.clear({origin_key(entry("b"))}, has_looked=True)
    assert not search.is_under_way


def test_suspects_stay_while_what_is_due_has_not_been_looked_at(search: RefusedRecordSearch) -> None:
    search.note(refused(entry("a"), entry("b")), AT)
    search.clear({origin_key(entry("c"))}, has_looked=False)
    assert search.is_seeking
    search.clear({origin_key(entry("a")), origin_key(entry("b"))}, has_looked=False)
    assert not search.is_under_way


def test_suspects_that_were_cancelled_hold_nothing_up(search: RefusedRecordSearch) -> None:
    search.note(refused(entry("a"), entry("b")), AT)
    search.clear({origin_key(entry("c"))}, has_looked=True)
    assert not search.is_under_way


def test_what_all_records_of_a_batch_share_sets_all_of_them_aside(search: RefusedRecordSearch) -> None:
    search.note(refused(entry("a"), entry("b"), error=InvalidTimestampError), AT)
    assert search.refusals.keys() == {origin_key(entry("a")), origin_key(entry("b"))}
    assert not search.is_seeking


def test_another_version_of_a_refused_schedule_is_not_refused(search: RefusedRecordSearch) -> None:
    search.note(refused(entry("a")), AT)
    assert origin_key(entry("a", version=2)) not in search.refusals


def test_a_topic_without_the_right_to_write_is_denied_until_shortly_before_its_firings_are_tried_again(
    search: RefusedRecordSearch, targets: Any
) -> None:
    search.note(refused(entry("a"), entry("b"), error=TopicAuthorizationFailedError), AT + 10_000)
    ((topic, refusal, seconds),) = targets.denied
    assert (topic, refusal) == ("t", "the scheduler is not authorised to write to topic t")
    assert seconds == 49.5
    search.note(refused(entry("c"), error=MessageSizeTooLargeError), AT)
    assert len(targets.denied) == 1, "a record is not its topic"


# -- a partition that refuses one record after the other --------------------------------------------------------------


def test_a_partition_that_refuses_one_record_after_the_other_is_left_alone_and_then_tried_with_one(
    search: RefusedRecordSearch, targets: Any
) -> None:
    for number in range(1, MANY_REFUSED + 1):
        assert (targets.left_alone, targets.trials.places) == ([], set())
        search.note(refused(entry(str(number))), AT)
    ((place, reason, times),) = targets.left_alone
    assert (place, times) == (PLACE, 0)
    assert reason.startswith("it refuses one record after the other: ")
    assert targets.trials.places == {PLACE}


def test_whose_records_were_refused_is_remembered_for_trials(search: RefusedRecordSearch, targets: Any) -> None:
    for name in ("a", "b", "c"):
        search.note(refused(entry(name)), AT)
    ranks = [targets.trials.rank(PLACE, tenant, name) for tenant, name in (("acme", "b"), ("acme", "d"), ("zeta", "d"))]
    assert ranks == [(3, 2), (3, 0), (0, 0)]


def test_nobody_is_refused_for_what_others_sent_to_the_same_partition(search: RefusedRecordSearch) -> None:
    names = [str(number) for number in range(2 * MANY_REFUSED)]
    for name in names:
        search.note(refused(entry(name)), AT)
    assert search.refusals.keys() == {origin_key(entry(name)) for name in names}


# -- what is never met again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after_ms", "is_left"), [(0, True), (FORGET_MS, True), (FORGET_MS + 1, False)])
def test_what_was_refused_and_is_not_met_again_is_forgotten(
    search: RefusedRecordSearch, after_ms: int, is_left: bool
) -> None:
    search.note(refused(entry("a")), AT)
    search.expire(AT + after_ms)
    assert search.is_under_way is is_left


def test_each_refusal_is_forgotten_at_its_own_time(search: RefusedRecordSearch) -> None:
    search.note(refused(entry("a")), AT)
    search.note(refused(entry("b")), AT + 30_000)
    search.note(refused(entry("a")), AT + 40_000)
    search.expire(AT + 30_000 + FORGET_MS + 1)
    assert search.refusals.keys() == {origin_key(entry("a"))}
