"""Checks that a changelog continues where its lane left it.

Fencing makes a lane the only owner of its transactional ids, one id after the other. So there are moments in which two
workers can write: both take over while an id is stuck, and each gets a different id; or an id gets free before its new
owner has fenced it. But every transaction of a lane has records in its changelog, which is a single log. So each
transaction checks the offset of its records there before it commits: the second writer sees the first, and gives way.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from light_scheduler.errors import Overtaken
from light_scheduler.model.place import Place

from .batches import RecordBatches

Untouched = Callable[[int, int], Awaitable[bool]]
"""Returns whether no record between two offsets may count."""

log = logging.getLogger(__name__)


class Continuity:
    """Follows a changelog from offset `at`, the end of all committed records.

    Once the last transaction has its marker, everything before `end` is stable. `begin` is the first offset.
    """

    def __init__(self, changelog: Place, at: int, untouched: Untouched) -> None:
        self.begin = self.end = at
        self._changelog = changelog
        self._next = at
        self._untouched = untouched

    def aborted(self) -> None:
        """Record that the last checked transaction was aborted."""
        self.end = self._next

    async def check(self, sent: RecordBatches) -> None:
        """Check the sent batches of an open transaction. Raises Overtaken if another worker has written before it.

        Late markers and aborted records of others do not matter. Neither does a broker that dropped the marker of the
        previous commit (KAFKA-20734): the records of both transactions are then committed together.
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
