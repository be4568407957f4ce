"""The work that a cycle must not do, as its lane knows when the cycle begins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from light_scheduler.lanes.readable import CanRead, all_can_be_read

from .condemned_work import NOTHING_CONDEMNED
from .failing_work_search import Work


class Restrictions(NamedTuple):
    """Of one cycle; by default there are none.

    `condemned` work is refused, for these reasons, and `silenced` bulk commands without a word of it. A delayed command
    waits on unless it `can_read` it. Other partitions are asked for room and tokens, and answered, but those that are
    `left_alone`. What is for partitions that are `away` waits for them.
    """

    condemned: Mapping[Work, str] = NOTHING_CONDEMNED
    can_read: CanRead = all_can_be_read
    left_alone: frozenset[int] = frozenset()
    silenced: Collection[Work] = ()
    away: Collection[int] = frozenset()


UNRESTRICTED = Restrictions()
