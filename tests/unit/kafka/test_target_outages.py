"""Circuit breakers for partitions of targets: what opens them, what closes them, and when they are probed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.kafka.target_outages import FIRST_WAIT_S, FORGET_S, LAST_WAIT_S, SAME_S, WHOLE_TOPIC, Outages
from light_scheduler.model.place import Place

AT = 1_767_225_600_000
A, B, OTHER = ("t", 0), ("t", 1), ("other", 0)
EPSILON_S = 0.001


@dataclass
class Time:
    """A monotonic clock (s) that a test moves."""

    seconds: float = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def outages(time: Time) -> Outages:
    return Outages(time)


def fail_again(outages: Outages, time: Time, place: Place) -> float:
    """Have a place fail, wait for its probe, and answer that; return how long the wait was."""
    outages.suspect([place], "silent", AT)
    (outage,) = (outage for open_place, outage in outages if open_place == place)
    wait_s = outage.probe_at - time.seconds
    time.seconds = outage.probe_at
    assert outages.to_probe() == [place]
    outages.probed(place, answered=True)
    return wait_s


@pytest.mark.parametrize(("well_s", "since"), [(SAME_S - EPSILON_S, AT), (SAME_S, AT + 9_000)])
@pytest.mark.parametrize("how", ["a fault", "silence"])
def test_a_place_that_was_hardly_well_in_between_is_in_the_same_outage(
    outages: Outages, time: Time, how: str, well_s: float, since: int
) -> None:
    outages.suspect([A], "silent", AT)
    outages.close([A])
    time.seconds += well_s
    if how == "a fault":
        outages.observe("t", {0: "it has no leader"}, AT + 9_000)
    else:
        outages.suspect([A, B], "silent", AT + 9_000)
    found = {place: outage.since for place, outage in outages}
    assert found[A] == since
    assert found.get(B, AT + 9_000) == AT + 9_000


# -- what waits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "place", "held"),
    [
        pytest.param({}, A, None, id="nothing is wrong"),
        pytest.param({0: "x"}, A, A, id="its partition"),
        pytest.param({0: "x"}, B, None, id="another partition of its topic"),
        pytest.param({0: "x"}, OTHER, None, id="another topic"),
        pytest.param({WHOLE_TOPIC: "x"}, B, ("t", WHOLE_TOPIC), id="the whole topic"),
        pytest.param({WHOLE_TOPIC: "x", 1: "y"}, B, ("t", WHOLE_TOPIC), id="the topic and its partition"),
        pytest.param({WHOLE_TOPIC: "x"}, OTHER, None, id="the whole of another topic"),
    ],
)
def test_a_firing_waits_for_its_partition_or_for_its_whole_topic_and_for_nothing_else(
    outages: Outages, faults: dict[int, str], place: Place, held: Place | None
) -> None:
    outages.observe("t", faults, AT)
    assert outages.place_held(*place) == held


def test_the_topics_to_watch_are_those_with_something_open(outages: Outages) -> None:
    assert not outages
    outages.observe("t", {0: "x", 1: "x"}, AT)
    outages.suspect([OTHER], "silent", AT)
    assert (bool(outages), outages.topics, set(outages.places)) == (True, {"t", "other"}, {A, B, OTHER})
    outages.observe("t", {}, AT)
    assert (outages.topics, A in outages, OTHER in outages) == ({"other"}, False, True)


# -- faults that the metadata know ------------------------------------------------------------------------------------


def test_a_fault_that_the_metadata_know_is_over_as_soon_as_they_know_it_no_more(outages: Outages, time: Time) -> None:
    outages.observe("t", {0: "no leader", 1: "no leader"}, AT)
    outages.observe("t", {1: "no leader"}, AT + 1)
    assert outages.places == [B]
    assert outages.to_probe() == [], "there is nothing to find out"


def test_a_fault_that_the_metadata_knew_is_remembered_for_a_minute(outages: Outages, time: Time) -> None:
    outages.observe("t", {0: "x"}, AT)
    outages.suspect([B], "silent", AT)
    time.seconds += 5
    assert outages.known_faults() == {A: time.seconds}
    outages.observe("t", {}, AT)
    outages.close([B])
    mended_at = time.seconds
    time.seconds += FORGET_S - EPSILON_S
    assert outages.known_faults() == {A: mended_at}
    time.seconds += EPSILON_S
    assert outages.known_faults() == {}


def test_an_outage_has_begun_when_it_was_first_seen_and_has_the_last_reason(outages: Outages) -> None:
    outages.observe("t", {0: "no leader"}, AT)
    outages.observe("t", {0: "too few replicas"}, AT + 5_000)
    ((_, outage),) = outages
    assert (outage.since, outage.reason, outage.has_known_fault) == (AT, "too few replicas", True)


def test_metadata_without_a_fault_do_not_close_what_does_not_answer(outages: Outages) -> None:
    outages.suspect([A], "silent", AT)
    outages.observe("t", {}, AT)
    assert A in outages


def test_metadata_of_one_topic_close_nothing_of_another(outages: Outages) -> None:
    outages.observe("other", {0: "no leader"}, AT)
    outages.observe("t", {}, AT)
    assert OTHER in outages


def test_what_does_not_answer_is_not_probed_once_the_metadata_know_why(outages: Outages, time: Time) -> None:
    outages.suspect([A], "silent", AT)
    outages.observe("t", {0: "no leader"}, AT + 1)
    time.seconds += LAST_WAIT_S
    assert outages.to_probe() == []
    outages.observe("t", {}, AT + 2)
    assert A not in outages


def test_an_answered_probe_does_not_close_a_fault_that_the_metadata_know(outages: Outages, time: Time) -> None:
    outages.suspect([A], "silent", AT)
    time.seconds += FIRST_WAIT_S
    assert outages.to_probe() == [A]
    outages.observe("t", {0: "no leader"}, AT + 1)  # while the probe is on its way
    outages.probed(A, answered=True)
    assert A in outages


# -- probes -----------------------------------------------------------------------------------------------------------


def test_a_place_is_probed_after_its_wait_and_once_until_the_probe_is_over(outages: Outages, time: Time) -> None:
    outages.suspect([A], "silent", AT)
    time.seconds += FIRST_WAIT_S - EPSILON_S
    assert outages.to_probe() == []
    time.seconds += EPSILON_S
    assert outages.to_probe() == [A]
    time.seconds += LAST_WAIT_S
    assert outages.to_probe() == [], "the first probe is not over"


def test_a_place_whose_probe_fails_stays_open_and_is_probed_again(outages: Outages, time: Time) -> None:
    outages.suspect([A], "silent", AT)
    for _ in range(3):
        time.seconds += FIRST_WAIT_S
        assert outages.to_probe() == [A]
        outages.probed(A, answered=False)
        assert A in outages
        assert outages.to_probe() == [], "not at once"


def test_a_probe_of_a_place_that_was_closed_meanwhile_is_of_no_consequence(outages: Outages, time: Time) -> None:
    outages.suspect([A], "silent", AT)
    time.seconds += FIRST_WAIT_S
    assert outages.to_probe() == [A]
    outages.close([A])
    outages.probed(A, answered=False)
    assert not outages


def test_a_place_that_answers_probes_and_fails_again_waits_twice_as_long_each_time_up_to_a_limit(
    outages: Outages, time: Time
) -> None:
    waits = [fail_again(outages, time, A) for _ in range(9)]
    assert waits == pytest.approx([0.5, 1, 2, 4, 8, 16, 30, 30, 30])
    assert outages.failures(A) == 9


def test_a_place_that_fails_for_days_waits_no_longer_than_that(outages: Outages, time: Time) -> None:
    waits = [fail_again(outages, time, A) for _ in range(2_000)]
    assert waits[-1] == pytest.approx(LAST_WAIT_S)


def test_a_place_is_probed_sooner_if_there_is_reason_to_and_never_later(outages: Outages, time: Time) -> None:
    outages.suspect([A], "silent", AT, 5)
    outages.suspect([B], "silent", AT, 0)
    time.seconds += FIRST_WAIT_S / 2
    for place in (A, B, OTHER):
        outages.hasten(place)
    time.seconds += FIRST_WAIT_S / 2
    assert outages.to_probe() == [B]
    time.seconds += FIRST_WAIT_S / 2
    assert outages.to_probe() == [A]


def test_how_often_it_failed_may_be_told(outages: Outages, time: Time) -> None:
    for _ in range(3):
        fail_again(outages, time, A)
    outages.suspect([A], "it refuses", AT, 1)
    ((_, outage),) = outages
    assert outage.probe_at - time.seconds == 2 * FIRST_WAIT_S


@pytest.mark.parametrize(("well_s", "failures"), [(FORGET_S - EPSILON_S, 3), (FORGET_S, 1)])
def test_a_place_that_was_well_for_a_minute_is_like_any_other(
    outages: Outages, time: Time, well_s: float, failures: int
) -> None:
    for _ in range(2):
        fail_again(outages, time, A)
    time.seconds += well_s
    fail_again(outages, time, A)
    assert outages.failures(A) == failures


def test_failures_of_one_place_are_not_anothers(outages: Outages, time: Time) -> None:
    for _ in range(3):
        fail_again(outages, time, A)
    assert fail_again(outages, time, B) == FIRST_WAIT_S
    assert (outages.failures(A), outages.failures(B), outages.failures(OTHER)) == (3, 1, 0)


def test_a_place_that_is_open_is_not_suspected_a_second_time(outages: Outages, time: Time) -> None:
    outages.suspect([A], "silent", AT)
    time.seconds += FIRST_WAIT_S
    outages.suspect([A, A], "silent still", AT + 500)
    ((_, outage),) = outages
    assert (outage.since, outage.reason, outages.failures(A)) == (AT, "silent", 1)
    assert outages.to_probe() == [A], "its probe is not put off"


# -- listeners --------------------------------------------------------------------------------------------------------


def test_lanes_hear_of_what_is_closed_and_only_of_that(outages: Outages, time: Time) -> None:
    heard: list[list[Place]] = []
    outages.changed.append(lambda: heard.append(outages.places))
    outages.suspect([A], "silent", AT)
    outages.observe("t", {1: "no leader"}, AT)
    outages.close([OTHER])
    assert heard == [], "nothing was closed"
    outages.observe("t", {}, AT)
    assert heard == [[A]], "a lane that is woken finds the place closed"
    time.seconds += FIRST_WAIT_S
    outages.to_probe()
    outages.probed(A, answered=True)
    assert heard == [[A], []]


# -- whatever happens -------------------------------------------------------------------------------------------------

PLACES = [A, B, OTHER, ("other", WHOLE_TOPIC)]
events = st.one_of(
    st.tuples(st.just("suspect"), st.sampled_from(PLACES)),
    st.tuples(st.just("observe"), st.sampled_from(["t", "other"]), st.sets(st.sampled_from([WHOLE_TOPIC, 0, 1]))),
    st.tuples(st.just("probe"), st.booleans()),
)


@given(history=st.lists(events, max_size=30))
def test_whatever_happened_everything_closes_once_the_metadata_are_clean_and_probes_are_answered(
    history: list[tuple[object, ...]],
) -> None:
    time = Time()
    outages = Outages(time)
    for event in history:
        match event:
            case ("suspect", tuple() as place):
                outages.suspect([place], "silent", AT)
            case ("observe", str() as topic, set() as faults):
                outages.observe(topic, dict.fromkeys(faults, "no leader"), AT)
            case ("probe", bool() as answered):
                time.seconds += 1.0
                for probed in outages.to_probe():
                    outages.probed(probed, answered=answered)
    for topic in ("t", "other"):
        outages.observe(topic, {}, AT)
    time.seconds += LAST_WAIT_S
    for probed in outages.to_probe():
        outages.probed(probed, answered=True)
    assert not outages
