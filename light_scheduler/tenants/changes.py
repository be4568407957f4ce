"""Describes changes of a tenant's rules for the history. Pure."""

from __future__ import annotations

from light_scheduler.model.tenant_rules import TenantRules


def rules_change(name: str, before: TenantRules, after: TenantRules) -> str:
    """Return a text such as `rules of tenant shop: max_pending 100 -> 200, weight none -> 3`."""
    values = ((rule, getattr(before, rule), getattr(after, rule)) for rule in TenantRules.__struct_fields__)
    changes = [f"{rule} {_text(old)} -> {_text(new)}" for rule, old, new in values if old != new]
    return f"rules of tenant {name}: {', '.join(changes) or 'set again, unchanged'}"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return f"{value:.15g}"
    return "none" if value is None else str(value)
