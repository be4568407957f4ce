"""Texts in the history about changes of a tenant's state: `tenant shop: active -> paused`."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model.tenant_rules import TenantState

_ARROW = " -> "


class StateChange(NamedTuple):
    """A tenant's states before and after a change."""

    before: TenantState
    after: TenantState


def state_change(name: str, before: TenantState, after: TenantState) -> str:
    """Describe the change of a tenant's state."""
    return f"{_begin(name)}{before}{_ARROW}{after}"


def read_state_change(name: str, reason: str) -> StateChange | None:
    """Parse the change of a tenant's state from the reason of an event; None if it is about something else."""
    begin = _begin(name)
    if not name or not reason.startswith(begin):
        return None
    before, _, after = reason.removeprefix(begin).partition(_ARROW)
    try:
        return StateChange(TenantState(before), TenantState(after))
    except ValueError:
        return None


def _begin(name: str) -> str:
    return f"tenant {name}: "
