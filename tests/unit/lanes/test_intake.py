from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.errors import LaneError
from light_scheduler.lanes.input.intake import MAX_WAITING, MAX_WAITING_BATCHES, MAX_WAITING_BYTES, Intake


@dataclass
class Calls:
    """An intake, and how often it called."""

    woken: int = 0
    room: int = 0
    intake: Intake = field(init=False)

    def __post_init__(self) -> None:
        self.intake = Intake(self._wake, self._make_room)

    def _wake(self) -> None:
        self.woken += 1

    def _make_room(self) -> None:
        self.room += 1


def records(*offsets: int) -> list[ConsumerRecord]:
    return [ConsumerRecord("commands", 0, offset, 0, 0, None, b"", None, -1, -1, ()) for offset in offsets]


def opened(position: int = 10, backlog_end: int = 10) -> Intake:
    intake = Calls().intake
    intake.open(position, backlog_end)
    return intake


def offsets(taken: list[ConsumerRecord]) -> list[int]:
    return [record.offset for record in taken]


# -- order and gaps ---------------------------------------------------------------------------------------------------


def test_batches_that_follow_each_other_are_taken_in_order() -> None:
    intake = opened()
    intake.offer(intake.epoch, 10, records(10, 11))
    intake.offer(intake.epoch, 12, records(12))
    assert intake.next_offset == 13
    assert offsets(intake.take(100)) == [10, 11, 12]
    assert intake.take(100) == []


def test_offsets_that_no_record_stands_for_are_no_gap() -> None:
    intake = opened()
    intake.offer(intake.epoch, 10, records(12, 15))  # fetched from 10 on: 10, 11, 13 and 14 are markers or compacted
    intake.offer(intake.epoch, 16, records(20))
    assert offsets(intake.take(100)) == [12, 15, 20]


@pytest.mark.parametrize("first", [9, 11, 12])
def test_a_batch_that_does_not_start_where_the_last_one_ended_is_refused_and_the_fetcher_sent_back(first: int) -> None:
    intake = opened()
    intake.needs_seek = False
    intake.offer(intake.epoch, first, records(first))
    assert intake.needs_seek
    assert intake.next_offset == 10
    assert intake.take(100) == []


def test_after_a_gap_the_batch_that_was_missing_is_welcome() -> None:
    intake = opened()
    intake.offer(intake.epoch, 11, records(11))
    intake.offer(intake.epoch, 10, records(10, 11))
    assert offsets(intake.take(100)) == [10, 11]


def test_what_was_fetched_before_the_intake_opened_again_is_void() -> None:
    intake = opened()
    before = intake.epoch
    intake.offer(before, 10, records(10))
    intake.open(10, 10)
    intake.needs_seek = False
    assert intake.take(100) == []
    intake.offer(before, 10, records(10))
    assert intake.needs_seek
    assert intake.take(100) == []
    intake.offer(intake.epoch, 10, records(10))
    assert offsets(intake.take(100)) == [10]


def test_a_closed_intake_drops_what_waits_and_takes_nothing() -> None:
    intake = opened()
    intake.offer(intake.epoch, 10, records(10))
    before = intake.epoch
    intake.close()
    assert intake.epoch != before
    assert intake.take(100) == []
    intake.offer(intake.epoch, 11, records(11))
    intake.offer(before, 11, records(11))
    assert intake.take(100) == []
    assert not intake.is_open
    assert not intake.backlog_taken


def test_an_opened_intake_asks_for_a_seek_to_its_position() -> None:
    intake = opened(position=7)
    assert intake.is_open
    assert intake.needs_seek
    assert intake.next_offset == 7


# -- limits and calls -------------------------------------------------------------------------------------------------


def test_a_limit_splits_batches_and_loses_nothing() -> None:
    intake = opened()
    intake.offer(intake.epoch, 10, records(10, 11, 12))
    intake.offer(intake.epoch, 13, records(13, 14))
    assert [offsets(intake.take(limit)) for limit in (2, 2, 0, 2)] == [[10, 11], [12, 13], [], [14]]


def test_what_waits_is_not_changed_by_a_taker_who_was_given_part_of_it() -> None:
    intake = opened()
    batch = records(10, 11, 12)
    intake.offer(intake.epoch, 10, batch)
    intake.take(2).clear()
    assert offsets(intake.take(2)) == [12]
    assert offsets(batch) == [10, 11, 12]


def test_an_intake_is_full_at_its_bound_until_something_is_taken() -> None:
    intake = opened()
    for offset in range(10, 10 + MAX_WAITING_BATCHES):
        assert not intake.is_full
        intake.offer(intake.epoch, offset, records(offset))
    assert intake.is_full
    intake.take(1)
    assert not intake.is_full


def is_full(intake: Intake) -> bool:
    """For mypy, which takes a property for unchanged by what is called in between."""
    return intake.is_full


def test_an_intake_is_full_with_many_commands_however_few_batches_they_came_in() -> None:
    intake = opened(0, 0)
    intake.offer(intake.epoch, 0, records(*range(MAX_WAITING - 1)))
    assert not is_full(intake)
    intake.offer(intake.epoch, MAX_WAITING - 1, records(MAX_WAITING - 1))
    assert is_full(intake)
    intake.take(1)
    assert not is_full(intake)


def test_an_intake_is_full_with_large_commands_until_their_batch_is_taken() -> None:
    calls = Calls()
    intake = calls.intake
    intake.open(10, 10)
    intake.offer(intake.epoch, 10, records(10, 11), MAX_WAITING_BYTES - 1)
    assert not is_full(intake)
    intake.offer(intake.epoch, 12, records(12), 1)
    assert is_full(intake)
    intake.take(1)
    assert is_full(intake)
    assert calls.room == 1, "there is none"
    intake.take(1)
    assert not is_full(intake)
    assert calls.room == 2


@pytest.mark.parametrize("how", ["opened again", "closed"])
def test_an_intake_that_has_dropped_what_waited_is_not_full(how: str) -> None:
    intake = opened(0, 0)
    intake.offer(intake.epoch, 0, records(*range(MAX_WAITING)), MAX_WAITING_BYTES)
    if how == "closed":
        intake.close()
    else:
        intake.open(0, 0)
    assert not is_full(intake)


def test_a_batch_wakes_the_lane_and_a_refused_one_does_not() -> None:
    calls = Calls()
    calls.intake.open(10, 10)
    calls.intake.offer(calls.intake.epoch, 11, records(11))
    assert calls.woken == 0
    calls.intake.offer(calls.intake.epoch, 10, records(10))
    assert calls.woken == 1


def test_opening_makes_room_and_so_does_taking_of_what_was_full() -> None:
    calls = Calls()
    calls.intake.open(10, 10)
    assert calls.room == 1
    for offset in range(10, 10 + MAX_WAITING_BATCHES):
        calls.intake.offer(calls.intake.epoch, offset, records(offset))
    calls.intake.take(2)
    assert calls.room == 2
    calls.intake.take(2)
    assert calls.room == 2, "there was room"


# -- the backlog ------------------------------------------------------------------------------------------------------


def test_without_a_backlog_it_is_taken_from_the_start() -> None:
    assert opened(10, 10).backlog_taken
    assert opened(10, 0).backlog_taken
    assert not opened(10, 11).backlog_taken


def test_the_backlog_is_taken_when_its_last_command_has_been_taken_not_when_it_has_arrived() -> None:
    intake = opened(10, 14)
    intake.offer(intake.epoch, 10, records(10, 11))
    intake.offer(intake.epoch, 12, records(12, 13, 14))
    assert not intake.backlog_taken
    taken = []
    for limit in (1, 2):
        intake.take(limit)
        taken.append(intake.backlog_taken)
    intake.take(1)
    assert [*taken, intake.backlog_taken] == [False, False, True]


def test_markers_after_the_last_command_of_the_backlog_need_no_record() -> None:
    intake = opened(10, 14)
    intake.offer(intake.epoch, 10, records(10, 11))
    intake.take(100)
    assert not intake.backlog_taken
    intake.reached(13)
    intake.take(100)
    assert not intake.backlog_taken
    intake.reached(14)
    intake.take(100)
    assert intake.backlog_taken


def test_markers_after_the_backlog_do_not_count_while_commands_before_them_wait() -> None:
    intake = opened(10, 13)
    intake.offer(intake.epoch, 10, records(10, 11))
    intake.reached(13)
    intake.take(1)
    assert not intake.backlog_taken
    intake.take(1)
    assert intake.backlog_taken


def test_a_backlog_of_markers_only_is_taken_once_they_have_been_passed() -> None:
    calls = Calls()
    intake = calls.intake
    intake.open(10, 12)
    intake.take(1)
    assert not intake.backlog_taken
    intake.reached(12)
    assert calls.woken == 1
    intake.take(1)
    assert intake.backlog_taken


def test_a_position_that_is_no_news_wakes_nobody() -> None:
    calls = Calls()
    calls.intake.reached(99)  # not open yet
    calls.intake.open(10, 12)
    calls.intake.reached(10)
    calls.intake.reached(9)
    assert calls.woken == 0
    calls.intake.reached(12)
    calls.intake.take(1)
    calls.intake.reached(13)  # the backlog has been taken: positions are of no more interest
    assert calls.woken == 1


def test_markers_do_not_change_where_the_next_batch_must_start() -> None:
    intake = opened(10, 20)
    intake.reached(15)
    assert intake.next_offset == 10
    intake.offer(intake.epoch, 10, records(16))
    assert offsets(intake.take(10)) == [16]


def test_opening_again_asks_for_the_new_backlog() -> None:
    intake = opened(10, 10)
    intake.close()
    intake.open(10, 12)
    assert not intake.backlog_taken


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=5), max_size=6),
    st.integers(0, 30),
    st.lists(st.integers(0, 4), max_size=40),
)
def test_the_backlog_is_never_taken_before_every_command_in_it_and_always_in_the_end(
    layout: list[list[bool]], backlog: int, limits: list[int]
) -> None:
    """`layout`: fetches, each of offsets that hold a command (True) or a marker."""
    calls = Calls()
    intake = calls.intake
    intake.open(0, backlog)
    commands: list[int] = []
    offset = 0
    for fetch in layout:
        first, here = intake.next_offset, [offset + place for place, is_command in enumerate(fetch) if is_command]
        offset += len(fetch)
        if here:
            intake.offer(intake.epoch, first, records(*here))
            commands += here
    intake.reached(offset)
    taken: list[int] = []
    for limit in [*limits, 100]:
        more = offsets(intake.take(limit))
        assert len(more) <= limit
        taken += more
        if intake.backlog_taken:
            assert all(each in taken for each in commands if each < backlog)
    assert taken == commands
    assert intake.backlog_taken == (offset >= backlog)


def test_what_waits_is_counted_from_past_the_markers_behind_the_last_command() -> None:
    intake = opened()
    assert intake.done_before(10) == 10
    intake.offer(intake.epoch, 10, records(10, 11))
    intake.reached(14)
    assert intake.done_before(10) == 10, "two commands wait"
    intake.take(10)
    assert intake.done_before(10) == 10, "they are not committed"
    assert intake.done_before(12) == 14
    intake.close()
    assert intake.done_before(12) == 12


def test_a_place_that_the_log_does_not_have_is_an_error_of_the_lane_until_it_reads_on_elsewhere() -> None:
    calls = Calls()
    calls.intake.open(10, 10)
    calls.intake.lose(10)
    assert calls.woken == 1
    with pytest.raises(LaneError, match="no longer has offset 10"):
        calls.intake.take(1)
    calls.intake.open(20, 20)
    assert calls.intake.take(1) == []


def test_a_batch_from_before_the_place_that_is_read_from_is_refused() -> None:
    intake = opened()
    intake.offer(intake.epoch, 10, records(3, 4))
    assert intake.needs_seek
    assert intake.take(10) == []
