"""Which partitions a lane leaves alone: those that may be why its transactions fail, and those known to be away."""

from __future__ import annotations

from light_scheduler.lanes.failures.unresponsive_partitions import FIRST_PAUSE_MS, LAST_PAUSE_MS, Neighbours

AT = 1_767_225_600_000
PLACES = [("commands", 3), ("commands", 2), ("changelog", 1), ("commands", 1)]
OTHERS = {0, 2, 3}


def left_alone(neighbours: Neighbours, now: int = AT) -> set[int]:
    return set(neighbours.left_alone(4, frozenset(), now))


def pause(neighbours: Neighbours) -> int:
    """Let a transaction fail in which partition 3 does not answer; return for how many first pauses it is alone."""
    neighbours.failed(PLACES, {("changelog", 1), ("commands", 2)}, AT)
    return next(n for n in range(100) if not left_alone(neighbours, AT + n * FIRST_PAUSE_MS))


def test_one_that_did_not_answer_is_left_alone_for_longer_and_longer_until_something_was_written_to_it() -> None:
    neighbours = Neighbours("commands", 1)
    assert left_alone(neighbours) == set()
    assert [pause(neighbours) for _ in range(6)] == [1, 2, 4, 8, 16, 16]
    neighbours.failed(PLACES, {("changelog", 1), ("commands", 2)}, AT)
    assert left_alone(neighbours, AT + LAST_PAUSE_MS - 1) == {3}
    neighbours.committed([("changelog", 1), ("commands", 2)])
    assert pause(neighbours) == 16
    neighbours.committed([("commands", 3)])
    assert pause(neighbours) == 1


def test_all_are_left_alone_if_nothing_answered_that_a_transaction_wrote_to() -> None:
    neighbours = Neighbours("commands", 1)
    neighbours.failed(PLACES, {}, AT)
    assert left_alone(neighbours, AT + FIRST_PAUSE_MS - 1) == OTHERS
    assert left_alone(neighbours, AT + FIRST_PAUSE_MS) == set()
    neighbours.failed(PLACES, {}, AT)
    neighbours.committed([("commands", 2)])
    assert left_alone(neighbours, AT + 2 * FIRST_PAUSE_MS - 1) == OTHERS
    neighbours.failed(PLACES, {}, AT)
    assert left_alone(neighbours, AT + FIRST_PAUSE_MS) == set()


def test_failures_that_no_other_partition_of_the_topic_had_a_part_in_do_not_count() -> None:
    neighbours = Neighbours("commands", 1)
    neighbours.failed([("commands", 1), ("targets", 3)], {}, AT)
    neighbours.failed(PLACES, {("commands", 2), ("commands", 3)}, AT)
    assert left_alone(neighbours) == set()


def test_those_that_are_known_to_take_nothing_are_left_alone_for_as_long_as_that() -> None:
    neighbours = Neighbours("commands", 1)
    neighbours.failed(PLACES, {("changelog", 1), ("commands", 2)}, AT)
    assert neighbours.left_alone(4, frozenset({0, 7}), AT) == {0, 3}
    assert left_alone(neighbours) == {3}


def test_one_that_takes_nothing_itself_asks_nobody() -> None:
    assert Neighbours("commands", 1).left_alone(4, frozenset({1}), AT) == OTHERS


def test_nobody_is_left_alone_for_longer_after_a_clock_was_set_back() -> None:
    neighbours = Neighbours("commands", 1)
    neighbours.failed(PLACES, {("changelog", 1), ("commands", 2)}, AT)
    assert left_alone(neighbours, AT - LAST_PAUSE_MS) == set()
