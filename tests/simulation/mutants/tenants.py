"""Rules of tenants, their removal, and their quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.engine import room_lending as lending_module
from light_scheduler.lanes.cycle import commands as commands_module
from light_scheduler.lanes.cycle import firings as firings_module
from light_scheduler.lanes.cycle.removal import Removal
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model.tenant_rules import TenantBook
from light_scheduler.tables import Overlay
from simulation.drawing import draw_tenants

from .planting import mutant, replaced


@mutant(2, "Commands are not held to the rules of their tenant.", draw=draw_tenants)
def _commands_against_rules() -> Iterator[Any]:
    with replaced(commands_module, "check_tenant", lambda *_: None):
        yield None


@mutant(1, "What is due of a tenant that is paused is taken.", draw=draw_tenants)
def _paused_tenants_fire() -> Iterator[Any]:
    with replaced(TenantBook, "stopped", frozenset()):
        yield None


@mutant(2, "A firing goes to a target that its tenant may no longer use.", draw=draw_tenants)
def _firings_against_rules() -> Iterator[Any]:
    with replaced(firings_module, "refusal_of", lambda *_: None):
        yield None


@mutant(2, "What a failed cycle removed of a deleted tenant is not looked for again.", draw=draw_tenants)
def _a_failed_removal_is_forgotten() -> Iterator[Any]:
    stored = Overlay.stored

    def once_from_the_start(self: Overlay, prefix: bytes, after: bytes) -> Iterator[bytes]:
        if prefix in seen and not after:
            return iter(())
        seen.add(prefix)
        return stored(self, prefix, after)

    seen: set[bytes] = set()
    with replaced(Overlay, "stored", once_from_the_start):
        yield None


@mutant(2, "Of a deleted tenant one schedule is left.", draw=draw_tenants)
def _removal_ends_too_soon() -> Iterator[Any]:
    advance = Removal._advance

    def once(self: Removal, transaction: Transaction, tenant: str, limit: int, max_bytes: int) -> tuple[int, int]:
        removed = advance(self, transaction, tenant, limit, max_bytes)
        self._done.add(tenant)
        return removed

    with replaced(Removal, "_advance", once):
        yield None


@mutant(2, "Every partition has the whole quota.", draw=draw_tenants)
def _quotas_are_not_shared() -> Iterator[Any]:
    with replaced(lending_module, "share_of", lambda quota, *_: quota):
        yield None


@mutant(2, "A tenant's messages go where their keys say, whatever its rules say.", draw=draw_tenants)
def _distribution_by_key_only() -> Iterator[Any]:
    with replaced(commands_module, "distributed", lambda command, *_: command):
        yield None
