"""Rules of tenants in a history: when they change, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from light_scheduler.model.tenant_rules import NO_TENANTS, OverRate, Tenant, TenantBook, TenantRules, TenantState

TENANTS = {"c1": "acme", "c2": "acme", "d1": "zeta", "d2": "zeta", "d3": "zeta"}
"""Whose schedule it is, by id."""


class Change(NamedTuple):
    """A tenant's rules from `at` (ms from the start of the history) on, in place of those before."""

    at: int
    tenant: str
    state: str = "active"
    targets: tuple[str, ...] | None = None
    default_target: str | None = None
    max_payload: int | None = None
    max_pending: int | None = None
    partition: int | None = None
    """Of its target, for whatever it schedules."""
    delayed_above: float | None = None
    """Commands a second; those above are delayed."""
    rejected_above: float | None = None
    """Likewise; those above are rejected."""

    @property
    def commands_per_second(self) -> float | None:
        """Commands a second, whatever becomes of those above."""
        return self.rejected_above if self.delayed_above is None else self.delayed_above

    @property
    def is_stopped(self) -> bool:
        """Whether nothing of the tenant may fire."""
        return self.state != "active"

    def forbids(self, target: str) -> bool:
        """Return whether nothing may go to a topic."""
        return self.targets is not None and target not in self.targets

    def rejects(self, target: str | None, payload: bytes | None) -> bool:
        """Return whether a command is to be rejected; `target` is None if it schedules nothing."""
        if self.state == "deleted":
            return True
        if target is None:
            return False
        return self.forbids(target) or (self.max_payload is not None and len(payload or b"") > self.max_payload)

    def has_room(self, pending: int, partition: int, partitions: int) -> bool:
        """Return whether one more schedule may be pending in a partition that has so many of them."""
        if self.max_pending is None:
            return True
        return pending < len(range(partition, self.max_pending, partitions))


class Timeline:
    """The rules of a history, by instant (UTC epoch ms)."""

    def __init__(self, changes: Sequence[Change], epoch: int) -> None:
        self._changes = sorted(changes, key=lambda change: change.at)
        self._epoch = epoch

    def at(self, tenant: str, now: int) -> Change | None:
        """Return what holds for a tenant at an instant."""
        return self.within(tenant, now, now)[-1]

    def within(self, tenant: str, begin: int, end: int) -> list[Change | None]:
        """Return all that holds for a tenant from one instant to another."""
        found: list[Change | None] = [None]
        for change in self._changes:
            at = self._epoch + change.at
            if change.tenant == tenant and at <= end:
                found = [*found, change] if at > begin else [change]
        return found


class SimulatedTenancy:
    """The rules as lanes have them: at the instant at which they look."""

    def __init__(self, changes: Sequence[Change], epoch: int, now: Callable[[], int]) -> None:
        self.changed: list[Callable[[], None]] = []
        self._changes = sorted(changes, key=lambda change: change.at)
        self._epoch = epoch
        self._now = now
        self._known, self._book = 0, NO_TENANTS

    @property
    def book(self) -> TenantBook:
        passed = self._now() - self._epoch
        known = sum(change.at <= passed for change in self._changes)
        if known != self._known:
            self._known = known
            latest = {change.tenant: change for change in self._changes[:known]}
            self._book = TenantBook(map(_tenant, latest.values()))
        return self._book

    async def loaded(self) -> None:
        """They are known from the start."""


def _tenant(change: Change) -> Tenant:
    rules = TenantRules(
        targets=change.targets,
        default_target=change.default_target,
        max_payload_bytes=change.max_payload,
        max_pending=change.max_pending,
        distribution=None if change.partition is None else f"partition:{change.partition}",
        commands_per_second=change.commands_per_second,
        over_rate=None if change.delayed_above is None else OverRate.DELAY,
    )
    return Tenant(name=change.tenant, rules=rules, state=TenantState(change.state))


def draw_changes(random: Random, target: str) -> tuple[Change, ...]:
    """Make rules of tenants up, and changes of them."""
    changes, at = [], 0
    for _ in range(random.randint(1, 6)):
        at += random.choice((0, 1, 300, 2_000, 5_000))
        tenant = random.choice(("default", "acme", "zeta", "zeta"))
        states = ("active", "active", "paused", "deleted") if tenant == "zeta" else ("active", "paused")
        changes.append(
            Change(
                at,
                tenant,
                random.choice(states),
                random.choice((None, None, (target,), ("elsewhere",))),
                random.choice((None, target)),
                random.choice((None, None, 1)),
                random.choice((None, None, 0, 1, 2, 5)),
                random.choice((None, 0, 1)),
                random.choice((None, 1.0, 4.0)),
            )
        )
    return tuple(changes)
