"""Whether a changelog goes on where its lane left it.

Fencing makes a lane the only owner of its transactional ids, one id after the other. That leaves instants in which two
workers can write: both take over while an id is stuck, and each ends up with another id; or an id gets free before its
new owner has fenced it. But all that a lane commits begins with records in its changelog, and that is one log. Each
transaction therefore looks at the offset that its records got there before it commits: whoever comes second sees the
first, and gives way.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from light_scheduler.errors import Overtaken
from light_scheduler.model.place import Place

from .batches import RecordBatches

Untouched = Callable[[int, int], Awaitable[bool]]
"""Tells whether there is nothing that may count between two offsets."""

log = logging.getLogger(__name__)


class Continuity:
    """Follows a changelog from an offset on: `at` is where all that counts ends.

    Once the last transaction has its marker, everything before `end` is stable. `begin` is the first offset.
    """

    def __init__(self, changelog: Place, at: int, untouched: Untouched) -> None:
        self.begin = self.end = at
        self._changelog = changelog
        self._next = at
        self._untouched = untouched

    def aborted(self) -> None:
        """Note that what was checked last has been aborted."""
        self.end = self._next

    async def check(self, sent: RecordBatches) -> None:
        """Take in what was sent and is not ended yet. Raises Overtaken if somebody else has written before it.

        Markers that were late, and what others aborted, change nothing. Nor does it that a broker has dropped the
        marker of a commit before (KAFKA-20734): the records of both transactions are committed together then.
        """
        written = sent.written.get(self._changelog)
        if written is None:
            return
        end, expected = self.end, self._next
        self.end, self._next = written.end, written.end + 1
        begin = written.end - written.records
        if end <= begin < expected:
            log.warning(
                "%s-%d lacks the marker of the commit that ends at offset %d: the next transaction decides for both",
                *self._changelog,
                end,
            )
        if begin < end or (begin > expected and not await self._untouched(expected, begin)):
            topic, partition = self._changelog
            raise Overtaken(
                f"changelog {topic}-{partition}: expected the next record at offset {expected}, found {begin}: "
                "another worker wrote to it, or it has lost records"
            )
