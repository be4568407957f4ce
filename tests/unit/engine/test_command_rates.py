"""How many commands of a tenant a lane takes."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine import CommandRates
from light_scheduler.model.rate_lending import RatePart
from light_scheduler.wire import partition_for

AT = 1_767_225_600_000


def carried_out(rates: CommandRates, recorded: Iterable[int], now: int, rate: float = 10) -> int:
    rates.begin()
    count = sum(rates.take("a", rate, at, now) for at in recorded)
    rates.commit()
    return count


def test_commands_above_a_rate_are_too_many_and_a_second_of_it_may_come_at_once() -> None:
    rates = CommandRates()
    assert carried_out(rates, [AT] * 20, AT) == 10
    assert carried_out(rates, range(AT, AT + 10_000, 10), AT + 10_000) == 99


def test_a_backlog_that_was_sent_slowly_is_carried_out_at_once() -> None:
    rates = CommandRates()
    hour = 3_600_000
    assert carried_out(rates, range(AT, AT + hour, 1_000), AT + 2 * hour) == 3_600


def test_parts_of_a_rate_are_the_rate_to_a_twentieth_while_more_is_sent() -> None:
    partitions, rate, sent_per_s, seconds = 12, 240.0, 500, 60
    lanes = [CommandRates() for _ in range(partitions)]
    taken = 0
    for number in range(sent_per_s * seconds):
        at = number * 1_000 // sent_per_s
        lane = lanes[partition_for(b"order-%d" % number, partitions)]
        taken += lane.take("shop", rate / partitions, at, at)
        lane.commit()
        lane.begin()
    after_a_pause = rate  # of one second
    assert 0.95 * rate * seconds <= taken <= rate * seconds + after_a_pause


@given(
    rate=st.floats(0.5, 200),
    partitions=st.integers(1, 12),
    sent=st.lists(st.tuples(st.integers(0, 2_000) | st.integers(0, 5), st.integers(0, 11), st.integers(1, 40))),
)
def test_in_any_window_all_partitions_take_the_rate_and_what_was_saved_however_uneven_the_keys_are(
    rate: float, partitions: int, sent: list[tuple[int, int, int]]
) -> None:
    lanes, now = [CommandRates() for _ in range(partitions)], AT
    taken: list[int] = []
    for wait, partition, count in sent:
        now += wait
        lane = lanes[partition % partitions]
        lane.begin()
        taken += [now for _ in range(count) if lane.take("a", rate / partitions, now, now)]
        lane.commit()
    for first, begin in enumerate(taken):
        for number, end in enumerate(taken[first:], start=1):
            assert number <= rate * (end - begin) / 1_000 + max(rate, partitions) + 1e-6


@given(rate=st.floats(1, 200), partitions=st.integers(1, 12))
def test_one_key_has_the_part_of_its_partition(rate: float, partitions: int) -> None:
    rates, share = CommandRates(), rate / partitions
    rates.begin()
    taken = sum(rates.take("a", share, AT + at, AT + at) for at in range(0, 20_000, 5))
    assert share * 20 - 1 <= taken <= share * 20 + max(1, share)


def caught_up(rates: CommandRates, recorded: int, now: int, rate: float = 10) -> int:
    """Return how many commands that wait go on at once."""
    rates.begin()
    count = 0
    while rates.catch_up("a", rate, now) and rates.take("a", rate, recorded, now):
        count += 1
    rates.commit()
    return count


def test_what_waits_catches_up_with_all_that_was_earned_since_the_last_command_and_with_no_more() -> None:
    rates, now = CommandRates(), AT + 5_000
    assert carried_out(rates, [AT] * 20, AT) == 10
    assert caught_up(rates, AT, now) == 50
    assert carried_out(rates, [now] * 20, now) == 0
    assert caught_up(rates, AT, now + 250) == 2


@given(rate=st.floats(0.5, 200), seconds=st.integers(0, 60))
def test_who_catches_up_has_the_rate_for_the_time_in_which_nobody_looked(rate: float, seconds: int) -> None:
    rates = CommandRates()
    carried_out(rates, [AT] * 300, AT, rate)
    assert abs(caught_up(rates, AT, AT + 1_000 * seconds, rate) - rate * seconds) <= 1 + rate / 10


def test_of_a_tenant_that_was_not_met_nobody_knows_since_when_it_waits() -> None:
    rates = CommandRates()
    assert not rates.catch_up("a", 10, AT)
    assert carried_out(rates, [AT] * 20, AT) == 10
    assert not rates.catch_up("a", 11, AT + 5_000), "the rule was changed"


def test_nobody_catches_up_with_the_time_in_which_another_lane_had_the_partition() -> None:
    rates, back = CommandRates(), AT + 60_000
    assert carried_out(rates, [AT] * 20, AT) == 10
    rates.take_back()
    assert not rates.catch_up("a", 10, back)
    rates.begin()
    assert rates.allows("a", 10, back - 5_000, back)
    rates.begin()
    assert not rates.catch_up("a", 10, back), "the transaction that looked at it was dropped"
    assert carried_out(rates, [back - 5_000] * 20, back) == 10
    assert caught_up(rates, AT, back) == 50


def test_tokens_from_another_lane_let_nobody_catch_up_with_the_time_in_which_another_lane_had_the_partition() -> None:
    rates, back = CommandRates(), AT + 60_000
    assert carried_out(rates, [AT] * 20, AT) == 10
    rates.take_back()
    rates.begin()
    rates.borrow("a", 1, back + 1_000)
    rates.commit()
    assert caught_up(rates, AT, back) == 0
    assert carried_out(rates, [back] * 20, back) == 11
    assert caught_up(rates, AT, back + 1_000) == 10


def test_nobody_catches_up_with_a_clock_that_is_set_back_or_where_a_partition_was_added() -> None:
    rates = CommandRates()
    assert carried_out(rates, [AT] * 20, AT) == 10
    assert not rates.catch_up("a", 10, AT - 1_000)
    rates.earn(RatePart(0.25, is_new=True), AT)
    assert not rates.catch_up("a", 10, AT + 5_000)


def test_timestamps_that_are_made_up_gain_nothing() -> None:
    rates = CommandRates()
    assert carried_out(rates, [AT + 60_000 * number for number in range(100)], AT) == 10
    assert carried_out(rates, [AT - 60_000, AT + 60_000] * 100, AT) == 0
    assert carried_out(rates, [AT] * 100, AT + 500) == 0
    assert carried_out(rates, [AT + 500] * 100, AT + 500) == 5


def test_a_clock_that_is_set_back_holds_commands_up_no_longer_than_usual() -> None:
    rates, back = CommandRates(), AT - 600_000
    assert carried_out(rates, [AT] * 20, AT) == 10
    assert carried_out(rates, [back] * 20, back) == 0
    assert carried_out(rates, [back + 1_000] * 20, back + 1_000) == 10


def test_what_was_lent_is_gone_though_the_transaction_may_have_failed() -> None:
    rates = CommandRates()
    assert carried_out(rates, [AT], AT) == 1
    rates.begin()
    assert rates.lend("a", 10, 100, 0, AT, AT) == 9
    assert carried_out(rates, [AT] * 20, AT) == 0


def test_nor_is_it_lent_again_if_nothing_of_the_tenant_was_committed_before() -> None:
    rates = CommandRates()
    rates.begin()
    assert rates.take("a", 10, AT, AT)
    assert rates.lend("a", 10, 6, 0, AT, AT) == 6
    rates.begin()
    assert rates.lend("a", 10, 100, 0, AT, AT) == 4
    assert carried_out(rates, [AT] * 20, AT) == 0
    rates.begin()
    assert rates.lend("a", 20, 100, 0, AT, AT) == 20, "a rate that is new"
    rates.begin()
    assert rates.lend("a", 20, 100, 0, AT, AT) == 0


def test_an_ask_that_is_read_late_is_not_held_against_the_commands_behind_it() -> None:
    rates, late = CommandRates(), AT + 3_600_000
    assert rates.lend("a", 10, 100, 0, AT, late) == 10
    assert all(rates.take("a", 10, AT + 1_000 * second, late) for second in range(1, 60))


def test_where_a_partition_was_added_a_tenant_that_is_met_later_earns_nothing_for_the_time_before() -> None:
    rates, now = CommandRates(), AT + 100_000
    rates.earn(RatePart(0.25, is_new=True), now)
    assert not any(rates.take("a", 8, AT + 1_000 * second, now) for second in range(40, 100))
    assert rates.take("a", 8, now + 1_000, now + 1_000)


def test_when_partitions_are_added_what_was_saved_stays_up_to_the_new_part() -> None:
    rates = CommandRates()
    assert carried_out(rates, [AT] * 4, AT, rate=12) == 4
    rates.earn(RatePart(0.25), AT)
    assert carried_out(rates, [AT] * 20, AT, rate=12) == 3
    rates.earn(RatePart(0.5), AT)
    assert carried_out(rates, [AT] * 20, AT, rate=12) == 0
    assert carried_out(rates, [AT + 500] * 20, AT + 500, rate=12) == 3


def test_where_a_partition_was_added_nothing_is_saved_up_and_the_past_counts_for_nothing() -> None:
    rates = CommandRates()
    rates.earn(RatePart(0.0, is_new=True), AT)
    is_new = [rates.is_new]
    assert carried_out(rates, [AT + 1_000] * 20, AT + 1_000, rate=12) == 0
    rates.earn(RatePart(0.5, is_new=True), AT + 1_000)
    assert carried_out(rates, [AT + 1_500] * 20, AT + 1_500, rate=12) == 3
    rates.begin()
    assert sum(rates.take("b", 12, AT + 1_500, AT + 1_500) for _ in range(20)) == 3, "another tenant"
    rates.earn(RatePart(0.5), AT + 1_500)
    assert [*is_new, rates.is_new] == [True, False]
    assert carried_out(rates, [AT + 2_500] * 20, AT + 2_500, rate=12) == 6


def test_a_new_rate_holds_at_once() -> None:
    rates = CommandRates()
    assert carried_out(rates, [AT] * 20, AT) == 10
    assert carried_out(rates, [AT] * 20, AT, rate=3) == 3


def test_what_a_transaction_took_that_was_dropped_was_not_taken() -> None:
    rates = CommandRates()
    assert carried_out(rates, [AT] * 4, AT) == 4
    for _ in range(3):
        rates.begin()
        assert [rates.take("a", 10, AT, AT) for _ in range(7)] == [True] * 6 + [False]
    assert carried_out(rates, [AT] * 20, AT) == 6
