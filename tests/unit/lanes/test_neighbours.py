"""When a lane asks other partitions for room: not while they may be why its transactions fail."""

from __future__ import annotations

from light_scheduler.lanes.neighbours import FIRST_PAUSE_MS, LAST_PAUSE_MS, Neighbours

AT = 1_767_225_600_000
OTHERS = [("commands", 3), ("changelog", 1)]


def pause(neighbours: Neighbours) -> int:
    """Let a transaction fail; return for how many first pauses nobody is asked."""
    neighbours.failed(OTHERS, AT)
    return next(n for n in range(100) if neighbours.may_be_asked(AT + n * FIRST_PAUSE_MS))


def test_after_failures_nobody_is_asked_for_longer_and_longer_until_something_was_written() -> None:
    neighbours = Neighbours("commands", 1)
    assert neighbours.may_be_asked(AT)
    assert [pause(neighbours) for _ in range(6)] == [1, 2, 4, 8, 16, 16]
    assert not neighbours.may_be_asked(AT + LAST_PAUSE_MS - 1)
    neighbours.committed([("changelog", 1)])
    assert pause(neighbours) == 16
    neighbours.committed(OTHERS)
    assert pause(neighbours) == 1


def test_failures_of_transactions_that_wrote_to_no_other_partition_do_not_count() -> None:
    neighbours = Neighbours("commands", 1)
    neighbours.failed([("commands", 1), ("targets", 3)], AT)
    assert neighbours.may_be_asked(AT)
