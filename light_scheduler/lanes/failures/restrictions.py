"""The work that a cycle must not do, as known when the cycle begins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from light_scheduler.lanes.input.readable import CanRead, all_can_be_read

from .condemned_work import NOTHING_CONDEMNED
from .failing_work_search import Work


class Restrictions(NamedTuple):
    """The restrictions of one cycle. By default, there are none.

    `condemned` work is refused with the given reasons. For `silenced` bulk commands, that is not recorded. A delayed
    command waits on unless the cycle `can_read` it. Partitions that are `left_alone` are not asked for room and tokens,
    and get no answer. Records for partitions that are `away` wait for them.
    """

    condemned: Mapping[Work, str] = NOTHING_CONDEMNED
    can_read: CanRead = all_can_be_read
    left_alone: frozenset[int] = frozenset()
    silenced: Collection[Work] = ()
    away: Collection[int] = frozenset()


UNRESTRICTED = Restrictions()
