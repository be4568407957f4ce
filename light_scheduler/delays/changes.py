"""History events about changes of a delay rule. Pure."""

from __future__ import annotations

from light_scheduler.durations import format_duration
from light_scheduler.model import DelayRule


def put(before: DelayRule | None, rule: DelayRule) -> str:
    """Say what a rule changes: `delay rule reminder: delay 1d -> 2d`; `before` None: it is new."""
    if before is None:
        return f"delay rule {rule.name} added: {rule}"
    parts = (
        ("source", before.source, rule.source),
        ("delay", format_duration(before.delay), format_duration(rule.delay)),
        ("target", before.target, rule.target),
    )
    changes = [f"{name} {old} -> {new}" for name, old, new in parts if old != new]
    return f"delay rule {rule.name}: {', '.join(changes) or 'set again, unchanged'}"


def removed(rule: DelayRule) -> str:
    """Say that a rule is gone, and what it was."""
    return f"delay rule {rule.name} removed: it was {rule}"
