"""Messages of a series that all have the same content are told apart by time, in other schedulers' dialects."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.ledger import Ledger, Record
from support.tries import tries

from light_scheduler.pipeline.audit import overflow
from light_scheduler.pipeline.audit.bounds import Bounds, Horizon
from light_scheduler.pipeline.audit.case import Case
from light_scheduler.pipeline.audit.cases import cases
from light_scheduler.pipeline.audit.verdict import Verdict, judge
from light_scheduler.pipeline.lag import LAG_MS

from .conftest import evidence, judged, judged_in_parts, order_of, topics_of
from .test_audit_of_dialects import MINUTE, SECOND, M, Sending

FIRINGS = 30
STEP = 10 * SECOND
END = M + FIRINGS * STEP + MINUTE


def end_of(firings: int) -> int:
    return M + firings * STEP + MINUTE


def beating(firings: int = FIRINGS) -> Sending:
    """Return an application whose only schedule is a series of equal messages, of a topic that takes JSON, too."""
    sending = Sending.of("karafka")
    target = {"target": {"topic": sending.ledger.target}, "payload": {"text": "beat"}}
    sending.control("beat", M, command="schedule", trigger={"every": "10s"}, max_firings=firings, **target)
    sending.ledger.run_until(end_of(firings))
    assert len({(each.value, str(each.headers)) for each in messages(sending.ledger)}) == 1
    return sending


def messages(ledger: Ledger) -> list[Record]:
    return sorted(ledger.of(ledger.target), key=lambda record: record.timestamp)


def lose(ledger: Ledger, *numbers: int) -> None:
    """Take the messages of these firings out, which count from 1."""
    there = messages(ledger)
    lost = [there[number - 1].timestamp for number in numbers]
    for (topic, _), log in ledger.records.items():
        if topic == ledger.target:
            log[:] = [record for record in log if record.timestamp not in lost]
            log[:] = [replace(record, offset=offset) for offset, record in enumerate(log)]


def copy(ledger: Ledger, number: int, after: int = 1) -> None:
    record = messages(ledger)[number - 1]
    ledger.append(record.topic, 3, record.timestamp + after, record.key, record.value, record.headers)


def stamp_by_broker(ledger: Ledger, ahead: int) -> None:
    """Have the broker stamp all messages, by a clock that is ahead of that of the workers."""
    for record in messages(ledger):
        ledger.change(record, replace(record, timestamp=record.timestamp + ahead, by_sender=False))


def told(found: dict[str, Verdict]) -> list[tuple[str, int | None]]:
    """Return the faults, each with the number of its firing."""
    faults = [fault for verdict in found.values() for fault in verdict.faults]
    return [(fault.kind.value, None if fault.due is None else (fault.due - M) // STEP) for fault in faults]


def read_before(ledger: Ledger, instant: int) -> None:
    """Leave in the history what it held at an instant: it is read before messages are, and a series goes on."""
    log = ledger.records[ledger.names.history, 0]
    log[:] = [record for record in log if record.timestamp < instant]


@pytest.mark.parametrize("lost", [(1,), (2, 3), (15,), (29,), (1, 15, 29)])
def test_a_message_that_is_missing_is_found_at_its_time_while_the_series_goes_on(lost: tuple[int, ...]) -> None:
    sending = beating()
    lose(sending.ledger, *lost)
    read_before(sending.ledger, M + FIRINGS * STEP)
    found = judged(sending.ledger, end=M + FIRINGS * STEP - SECOND)
    assert told(found) == [("missing", number) for number in lost]
    assert found["beat"].standing is None, "there are messages of lines that are yet to come"


def test_the_message_of_the_next_firing_is_not_taken_for_the_first_one() -> None:
    sending = beating()
    lose(sending.ledger, 1)
    read_before(sending.ledger, M + 2 * STEP)
    assert told(judged(sending.ledger, end=M + STEP + SECOND)) == [("missing", 1)]


@pytest.mark.parametrize(("lost", "copied"), [(7, 3), (3, 7), (7, 6), (6, 7)])
def test_a_copy_does_not_stand_for_a_message_that_is_missing(lost: int, copied: int) -> None:
    sending = beating()
    copy(sending.ledger, copied)
    copied_at = messages(sending.ledger)[copied].timestamp
    lose(sending.ledger, lost if lost < copied else lost + 1)
    found = judged(sending.ledger, end=END)
    assert sorted(told(found)) == [("duplicate", None), ("missing", lost)]
    assert [fault.at for fault in found["beat"].faults if fault.kind == "duplicate"] == [copied_at]


@settings(max_examples=tries(60))
@given(st.sets(st.integers(1, FIRINGS)), st.lists(st.integers(1, FIRINGS), max_size=5), st.sampled_from([1, 20_000]))
def test_all_that_is_lost_or_copied_is_found_and_nothing_else(lost: set[int], copied: list[int], most: int) -> None:
    sending = beating()
    for number in copied:
        at = M + number * STEP
        record = next(each for each in messages(sending.ledger) if each.timestamp == at)
        sending.ledger.append(record.topic, 3, at + 1 + len(messages(sending.ledger)), *parts(record))
    lose_at = {M + number * STEP for number in lost}
    for (topic, _), log in sending.ledger.records.items():
        if topic == sending.ledger.target:
            log[:] = [replace(each, offset=at) for at, each in enumerate(e for e in log if e.timestamp not in lose_at)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overflow, "MOST", most)
        found = told(judged(sending.ledger, end=END))
    assert Counter(found) == Counter([("missing", number) for number in lost] + [("duplicate", None)] * len(copied))


def parts(record: Record) -> tuple[Any, ...]:
    return record.key, record.value, record.headers


@pytest.mark.parametrize("ahead", [-LAG_MS, -11 * SECOND, -STEP, -3, 0, 3, 8 * SECOND, STEP, 25 * SECOND, LAG_MS])
def test_the_clock_of_the_broker_may_differ_by_so_much(ahead: int) -> None:
    sending = beating()
    stamp_by_broker(sending.ledger, ahead)
    faults = told(judged(sending.ledger, end=END + LAG_MS))
    assert faults == ([("early", number) for number in range(1, FIRINGS + 1)] if ahead < 0 else [])


@pytest.mark.parametrize("ahead", [0, 3, 8 * SECOND])
def test_a_message_that_the_broker_stamped_is_missing_if_there_are_too_few(ahead: int) -> None:
    sending = beating()
    lose(sending.ledger, 7, 20)
    stamp_by_broker(sending.ledger, ahead)
    found = told(judged(sending.ledger, end=END))
    assert [kind for kind, _ in found] == ["missing"] * 2


@settings(max_examples=tries(60))
@given(st.sets(st.integers(1, FIRINGS), max_size=5), st.sampled_from([0, 3, 4 * SECOND]))
@example({1}, 3)
@example({2, 3}, 0)
@example({29, 30}, 3)
def test_missing_messages_are_those_after_which_others_are_too_late(lost: set[int], ahead: int) -> None:
    sending = beating()
    lose(sending.ledger, *lost)
    stamp_by_broker(sending.ledger, ahead)
    found = judged(sending.ledger, end=END)
    assert sorted(told(found)) == [("missing", number) for number in sorted(lost)]
    assert found["beat"].deliveries.number == FIRINGS - len(lost)


@pytest.mark.parametrize("lost", [(1,), (15,), (23,), (4, 9, 17)])
def test_a_message_that_was_written_after_the_history_was_read_does_not_stand_for_a_missing_one(
    lost: tuple[int, ...],
) -> None:
    sending = beating()
    lose(sending.ledger, *lost)
    read, end = M + 24 * STEP + 1, M + 23 * STEP
    written = written_before(sending.ledger, read)
    stamp_by_broker(sending.ledger, 3)
    read_before(sending.ledger, read)
    assert told(judged(sending.ledger, end=end)) == [], "nothing tells when it was written"
    found = judged(sending.ledger, end=end, written=written)
    assert sorted(told(found)) == [("missing", number) for number in lost]
    assert found["beat"].standing is None, "the next audit needs the messages that came later"


@settings(max_examples=tries(60))
@given(
    st.sets(st.integers(1, FIRINGS), max_size=3),
    st.sampled_from([0, 3, 4 * SECOND, 8 * SECOND, STEP, MINUTE, LAG_MS]),
    st.integers(0, FIRINGS),
    st.integers(0, 3),
)
def test_no_more_is_missing_than_was_lost_while_a_series_goes_on(
    lost: set[int], ahead: int, lines: int, since: int
) -> None:
    """Messages may have been written `since` the end of the history was looked up, until those of targets were."""
    sending = beating()
    lose(sending.ledger, *lost)
    read = M + lines * STEP + 1
    written = written_before(sending.ledger, read + since * STEP)
    stamp_by_broker(sending.ledger, ahead)
    read_before(sending.ledger, read)
    found = told(judged(sending.ledger, end=read - STEP, written=written))
    least = len({number for number in lost if number < lines}) - since
    assert max(0, least) <= len(found) <= len({number for number in lost if number <= lines})
    assert {kind for kind, _ in found} <= {"missing"}


def test_a_message_that_cannot_be_read_yet_is_not_missing() -> None:
    sending = beating()
    lose(sending.ledger, 24)
    stamp_by_broker(sending.ledger, 8 * SECOND)
    read_before(sending.ledger, M + 24 * STEP + 1)
    log = [record for record in messages(sending.ledger) if record.timestamp > M + 25 * STEP]
    for record in reversed(log):
        sending.ledger.remove(record)
    assert told(judged(sending.ledger, end=M + 22 * STEP)) == []


def written_before(ledger: Ledger, instant: int) -> dict[str, dict[int, int]]:
    """Return where target topics end at an instant, by the clock of the workers."""
    ends = {
        partition: sum(record.timestamp < instant for record in log)
        for (topic, partition), log in ledger.records.items()
        if topic == ledger.target
    }
    return {ledger.target: ends}


def test_messages_of_firings_at_one_instant_are_counted() -> None:
    """Workers that were down fire all that was missed at once."""
    sending = Sending.of("karafka")
    target = {"target": {"topic": sending.ledger.target}, "payload": {"text": "beat"}}
    sending.control("beat", M, command="schedule", trigger={"every": "10s"}, misfire="all", **target)
    sending.ledger.run(M)
    sending.ledger.run(M + 100 * SECOND)
    assert [each.timestamp for each in messages(sending.ledger)] == [M + 100 * SECOND] * 10

    def faults() -> list[str]:
        return [kind for kind, _ in told(judged(sending.ledger, end=M + 105 * SECOND, patience=3 * MINUTE))]

    assert faults() == []
    for _ in range(2):
        sending.ledger.remove(messages(sending.ledger)[4])
    assert faults() == ["missing"] * 2
    for _ in range(3):
        copy(sending.ledger, 1, after=0)
    assert faults() == ["duplicate"]


def test_a_message_in_another_topic_is_that_of_its_instant() -> None:
    sending = beating()
    (record,) = [each for each in messages(sending.ledger) if each.timestamp == M + 7 * STEP]
    copy(sending.ledger, 7, after=0)
    lose_one = messages(sending.ledger)[6]
    sending.ledger.remove(lose_one)
    assert told(judged(sending.ledger, end=END)) == []
    lose(sending.ledger, 7)
    sending.ledger.append("elsewhere", 0, record.timestamp, *parts(record))
    assert told(judged(sending.ledger, end=END, targets=("elsewhere",))) == [("altered", 7)]


@pytest.mark.parametrize("cut", range(1, FIRINGS, 4))
def test_audits_in_parts_find_each_fault_once_and_where_it_is(cut: int) -> None:
    sending = beating()
    lose(sending.ledger, 5, 20)
    copy(sending.ledger, 1, after=1)
    copy(sending.ledger, 9, after=STEP // 2)
    copy(sending.ledger, 25, after=STEP // 2)
    cuts = [M + cut * STEP + SECOND, M + (cut + FIRINGS) * STEP // 2, END + MINUTE]
    found = judged_in_parts(sending.ledger, cuts)
    numbers = [((fault.due or 0) - M) // STEP if fault.kind == "missing" else None for _, fault in found]
    kinds = [(fault.kind.value, number) for (_, fault), number in zip(found, numbers, strict=True)]
    assert sorted(kinds, key=str) == [("duplicate", None)] * 3 + [("missing", 20), ("missing", 5)]


# -- many of them ------------------------------------------------------------------------------------------------------


BYTES_OF_A_MINUTE = 400


def peak_of(firings: int, *, by_sender: bool) -> int:
    """Return the memory (bytes) that judging a series takes at most, whose message in the middle is missing."""
    sending = beating(firings)
    if not by_sender:
        stamp_by_broker(sending.ledger, 3)
    lose(sending.ledger, firings // 2)
    rows, topics = sorted(evidence(sending.ledger), key=order_of), topics_of(sending.ledger)
    bounds, horizon = Bounds(0, end_of(firings), MINUTE), Horizon({sending.ledger.target: 0}, 0)
    gc.collect()
    tracemalloc.start()
    try:
        _, case = next(cases(rows, topics))
        assert isinstance(case, Case)
        verdict = judge(case, sending.ledger.rules, bounds, horizon, others=topics.others)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert verdict.deliveries.number == firings - 1
    assert [fault.kind for fault in verdict.faults] == ["missing"]
    return peak


@pytest.mark.soak
@pytest.mark.parametrize("by_sender", [True, False])
def test_more_equal_messages_take_memory_for_the_minutes_alone_in_which_they_fired(
    monkeypatch: pytest.MonkeyPatch, by_sender: bool
) -> None:
    monkeypatch.setattr(overflow, "MOST", 100)
    peak_of(200, by_sender=by_sender)  # what is made once
    more = peak_of(5_000, by_sender=by_sender) - peak_of(500, by_sender=by_sender)
    assert more < 4_500 * STEP / MINUTE * BYTES_OF_A_MINUTE
