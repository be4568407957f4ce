"""A commands topic that is lost after it has grown, created again as it was before, and grows again."""

from __future__ import annotations

import pytest
from support.moving import AFTER, BEFORE, MOVES, ONCE, SECRET, grown, mark, passed, record
from support.partition import NAMES, Partition

from light_scheduler.lanes.growing.handover import HandoverPass
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.tables import Overlay
from light_scheduler.wire.handover import EMPTIED

AS_BEFORE = Partitioning(BEFORE, secret=SECRET)


@pytest.mark.parametrize("forgets", [True, False])
async def test_schedules_move_again_although_an_earlier_growth_was_over(former: Partition, *, forgets: bool) -> None:
    """If the lane did not forget, they would stay: this shows that there is something to forget."""
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    assert sum(mark(each, EMPTIED) is not None for each in former.sent(NAMES.commands)) == AFTER - 1

    grown(former, AS_BEFORE)
    await former.run(in_another_log=forgets)
    await former.run(record(1, *ONCE))
    grown(former)
    former.handover = HandoverPass()
    await former.run()

    assert [each.key for each in passed(former, 5)] == ([MOVES, None] if forgets else [])
    assert former.table.pending == (0 if forgets else 1)


async def test_commands_that_were_away_when_the_topic_was_lost_are_not_waited_for(home: Partition) -> None:
    await home.run(record(5, *ONCE))
    assert Overlay(home.table).others.any_lent
    await home.run(in_another_log=True)
    assert not Overlay(home.table).others.any_lent
    cycle = await home.run(record(5, *ONCE, offset=43))
    assert cycle.moves[0] == 1  # it asks the partition that had the key, and waits for that answer only
