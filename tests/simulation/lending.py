"""A quota of pending schedules over all partitions, as commits tell of it: never passed, and not said to be used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from light_scheduler.engine.room_lending import CLOSED_MS, SEARCH_MS
from light_scheduler.wire.rate_lending import RATE_ASKED, RATE_LENT
from light_scheduler.wire.room_lending import ROOM_ASKED, ROOM_GIVEN

from .log import Record
from .ruled import Change
from .violation import Violation

if TYPE_CHECKING:
    from .model import Partition

NEARLY = 0.95
"""Of a quota: nobody is rejected while less is pending."""

KNOWN_MS = SEARCH_MS + CLOSED_MS
"""How long a lane may take a quota for used up that was: while it asks the others, and a second after that."""


class Quota:
    """What tenants have pending in all partitions. `is_calm` if nothing strikes, so all lanes run."""

    def __init__(self, changes: Sequence[Change], *, is_calm: bool) -> None:
        self.models: Sequence[Partition] = ()
        self._is_calm = is_calm
        self._is_constant = len({(change.tenant, change.max_pending) for change in changes}) == 1
        self._full_at: dict[str, int] = {}

    def judge(self, rule: Change, tenant: str, here: int, now: int, *, is_rejected: bool) -> None:
        """A schedule more is accepted or rejected at an instant (UTC epoch ms) where the tenant has so many."""
        most, total = rule.max_pending or 0, self._total(tenant)
        if not is_rejected and total + 1 >= NEARLY * most:
            self._full_at[tenant] = now
        if not is_rejected and here >= most:
            raise Violation(f"{tenant} has {here} pending in a partition, and got one more of at most {most} in all")
        if not self._is_constant:
            return
        if not is_rejected and total >= most:
            raise Violation(f"{tenant} has {total} pending, and got one more of at most {most}")
        if is_rejected and self._is_calm and now - self._full_at.get(tenant, 0) > KNOWN_MS:
            raise Violation(f"{tenant} has {total} pending of {most}, and was rejected")

    def note(self, rule: Change | None, tenant: str, now: int) -> None:
        """Remember when a tenant had about as much as it may have: before or after a commit at that instant."""
        if rule is not None and rule.max_pending is not None and self._total(tenant) >= NEARLY * rule.max_pending:
            self._full_at[tenant] = now

    def _total(self, tenant: str) -> int:
        return sum(each.tenant == tenant for model in self.models for each in model.pending.values())


def is_lending(record: Record) -> bool:
    """Return whether a partition asks another one for room or for tokens of a rate, or answers."""
    return any(name in (ROOM_ASKED, ROOM_GIVEN, RATE_ASKED, RATE_LENT) for name, _ in record.headers)
