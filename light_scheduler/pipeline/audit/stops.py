"""When tenants were stopped: paused, or deleted until they were resumed. Nothing of a stopped tenant fires.

The history has each change of a tenant's state, by the clock of whoever made it. Workers follow within two seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.model.tenant_rules import TenantState
from light_scheduler.wire.tenant_changes import StateChange, read_state_change

from .header_lists import Numbers, mask_of

Spans = tuple[tuple[int, int | None], ...]
"""Spans of time (UTC epoch ms), in order and apart; the last one may have no end yet."""

_FOREVER = 1 << 53


class ChangeAt(NamedTuple):
    """A change of a tenant's state at an instant (UTC epoch ms)."""

    tenant: str
    at: int
    change: StateChange


class Stops:
    """The spans in which one tenant was stopped."""

    def __init__(self, spans: Spans = ()) -> None:
        instants, stopped = [0], [0]
        for begin, end in spans:
            instants += [begin, _FOREVER if end is None else end]
            stopped += [stopped[-1], stopped[-1] + instants[-1] - begin]
        self._instants, self._stopped = np.array(instants), np.array(stopped)

    def between(self, start: int, end: int) -> int:
        """Return for how many of the ms from `start` to `end` the tenant was stopped."""
        if len(self._instants) == 1:
            return 0
        return int(self.each_between(np.array([start]), np.array([end]))[0])

    def each_between(self, starts: Numbers, ends: Numbers) -> Numbers:
        """Return the same of many."""
        up_to = (np.interp(instants, self._instants, self._stopped) for instants in (starts, ends))
        before, then = (stopped.astype(np.int64) for stopped in up_to)
        between: Numbers = np.maximum(then - before, 0)
        return between


NEVER_STOPPED = Stops()


class TenantStops:
    """The same, by tenant."""

    def __init__(self, spans: Mapping[str, Spans] | None = None) -> None:
        self._by_tenant = {tenant: Stops(of_one) for tenant, of_one in (spans or {}).items() if of_one}

    def of(self, tenant: str) -> Stops:
        return self._by_tenant.get(tenant, NEVER_STOPPED)

    def each_between(self, tenants: pa.Array, starts: Numbers, ends: Numbers) -> Numbers:
        """Return for how many ms from its start to its end the tenant of each was stopped."""
        stopped: Numbers = np.zeros(len(starts), np.int64)
        for tenant in self._by_tenant.keys() & set(pc.unique(tenants).to_pylist()) if self._by_tenant else ():
            of_one = mask_of(pc.equal(tenants, tenant))
            stopped[of_one] = self._by_tenant[tenant].each_between(starts[of_one], ends[of_one])
        return stopped


def told_stops(reasons: Iterable[tuple[str, int, str]]) -> Iterator[ChangeAt]:
    """Yield the changes of states among all changes: of which tenant, at which instant (UTC epoch ms), and a reason."""
    for tenant, at, reason in reasons:
        if (change := read_state_change(tenant, reason)) is not None:
            yield ChangeAt(tenant, at, change)


def spans_after(changes: Iterable[ChangeAt], before: Mapping[str, Spans]) -> dict[str, Spans]:
    """Return the spans of tenants after changes in the order of their log, given those before.

    If the history has lost when a stop began, it is taken to have begun where the one before it ended.
    """
    found = dict(before)
    for tenant, at, change in changes:
        found[tenant] = _after(found.get(tenant, ()), at, change)
    return found


def _after(spans: Spans, at: int, change: StateChange) -> Spans:
    last_end = spans[-1][1] if spans else 0
    if last_end is not None and change.before is not TenantState.ACTIVE:
        spans, last_end = (*spans, (last_end, None)), None
    if last_end is not None and change.after is not TenantState.ACTIVE:
        return (*spans, (max(at, last_end), None))
    if last_end is None and change.after is TenantState.ACTIVE:
        *others, (begin, _) = spans
        return (*others, (begin, at)) if at > begin else tuple(others)
    return spans
