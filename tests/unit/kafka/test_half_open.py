"""Partitions that refuse one record after the other: when they are on trial, and who may try."""

from __future__ import annotations

import pytest

from light_scheduler.kafka import half_open as module
from light_scheduler.kafka.half_open import MANY_REFUSED, Trials
from light_scheduler.kafka.target_outages import FIRST_WAIT_S, FORGET_S, Outages

AT = 1_767_225_600_000
A, B = ("t", 0), ("t", 1)


class Worker:
    """Trials beside outages; `seconds` is monotonic, `told` counts how often lanes were told to look again."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.told = 0
        self.outages = Outages(lambda: self.seconds, [self._tell])
        self.trials = Trials(self.outages)

    def _tell(self) -> None:
        self.told += 1

    def refuse(self, count: int = 1) -> list[int | None]:
        return [self.trials.refused(A, [("acme", "a")]) for _ in range(count)]


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_a_place_is_on_trial_after_several_refusals_and_left_alone_longer_each_time(worker: Worker) -> None:
    assert worker.refuse(MANY_REFUSED - 1) == [None] * (MANY_REFUSED - 1)
    assert worker.trials.places == set()
    assert worker.refuse(3) == [0, 1, 2]
    assert worker.trials.places == {A}


def test_what_several_lanes_meet_at_once_is_one_time(worker: Worker) -> None:
    worker.refuse(MANY_REFUSED)
    worker.outages.suspect([A], "it refuses", AT)
    assert worker.refuse(5) == [None] * 5
    worker.outages.close([A])
    assert worker.refuse() == [1]


def test_refusals_of_different_places_say_nothing_of_either(worker: Worker) -> None:
    for number in range(2 * (MANY_REFUSED - 1)):
        worker.trials.refused((A, B)[number % 2], [("acme", "a")])
    assert worker.trials.places == set()


def test_a_place_that_takes_records_between_is_not_on_trial(worker: Worker) -> None:
    for _ in range(2 * MANY_REFUSED):
        worker.refuse()
        worker.trials.took([A])
    assert worker.trials.places == set()


def test_what_one_lane_sees_taken_ends_the_trial_for_all_of_the_worker(worker: Worker) -> None:
    worker.refuse(MANY_REFUSED)
    worker.trials.took([B])
    assert (worker.trials.places, worker.told) == ({A}, 0)
    worker.trials.took([A, B])
    assert (worker.trials.places, worker.told) == (set(), 1)
    assert worker.refuse(MANY_REFUSED)[-1] == 0, "it begins anew"


def test_a_place_that_is_left_alone_when_a_record_is_taken_is_waited_for_no_longer(worker: Worker) -> None:
    worker.refuse(MANY_REFUSED)
    worker.outages.suspect([A], "it refuses", AT)
    worker.trials.took([A])
    assert (worker.outages.places, worker.told > 0) == ([], True)


@pytest.mark.parametrize("refusals", [1, MANY_REFUSED])
def test_a_record_that_was_taken_mends_nothing_that_is_not_a_refusal(worker: Worker, refusals: int) -> None:
    worker.refuse(refusals)
    if refusals < MANY_REFUSED:
        worker.outages.suspect([A], "it does not answer", AT)
    else:
        worker.outages.observe("t", {0: "it has no leader"}, AT)
    worker.trials.took([A])
    assert worker.outages.places == [A]


def test_a_tenant_that_was_not_refused_waits_only_as_long_as_after_the_first_time(worker: Worker) -> None:
    worker.refuse(MANY_REFUSED)
    worker.outages.suspect([A], "it refuses", AT, 5)
    worker.trials.waits(A, "acme")
    worker.seconds += FIRST_WAIT_S
    assert worker.outages.to_probe() == []
    worker.trials.waits(A, "zeta")
    worker.seconds += FIRST_WAIT_S / 2
    worker.trials.waits(A, "zeta")
    worker.seconds += FIRST_WAIT_S / 2
    assert worker.outages.to_probe() == [A]


def test_a_trial_ends_when_nothing_was_refused_for_long(worker: Worker) -> None:
    worker.refuse(MANY_REFUSED)
    worker.seconds += FORGET_S - 1
    assert worker.trials.places == {A}
    worker.seconds += 1
    assert worker.trials.places == set()
    assert worker.refuse() == [None]


def test_who_was_refused_last_comes_last(worker: Worker) -> None:
    for tenant, schedule in (("acme", "a"), ("zeta", "c"), ("acme", "b")):
        worker.trials.refused(A, [(tenant, schedule)])
    ranked = sorted(
        [("acme", "a"), ("acme", "d"), ("zeta", "c"), ("mono", "e")], key=lambda o: worker.trials.rank(A, *o)
    )
    assert ranked == [("mono", "e"), ("zeta", "c"), ("acme", "d"), ("acme", "a")]


def test_of_too_many_who_were_refused_the_first_are_forgotten(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ORIGINS", 2)
    for tenant in ("acme", "zeta", "acme", "mono"):
        worker.trials.refused(A, [(tenant, "a")])
    assert [worker.trials.rank(A, tenant, "a") for tenant in ("acme", "zeta", "mono")] == [(3, 3), (0, 0), (4, 4)]
