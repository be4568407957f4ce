"""The history's text about a change of a delay rule: `delay rule reminder added: carts -1d-> carts-left`."""

from __future__ import annotations

import re
from typing import NamedTuple

from light_scheduler.durations import format_duration
from light_scheduler.model import DelayRule

_WHOLE = re.compile(r"delay rule (\S+) (?:added: |removed: it was )(\S+) -\S+-> (\S+)")
_IN_PARTS = re.compile(r"delay rule (\S+): (.+)")
_PART = re.compile(r"(source|target) \S+ -> ([^\s,]+)")


class RuleChange(NamedTuple):
    """The topics of a rule after a change, or of one that was removed; None: the change leaves it as it was."""

    name: str
    source: str | None
    target: str | None


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


def read_rule_change(reason: str) -> RuleChange | None:
    """Return the change of a rule that a reason tells; None if it tells something else."""
    if (whole := _WHOLE.fullmatch(reason)) is not None:
        return RuleChange(*whole.groups())
    if (in_parts := _IN_PARTS.fullmatch(reason)) is None:
        return None
    parts = dict(_PART.findall(in_parts[2]))
    return RuleChange(in_parts[1], parts.get("source"), parts.get("target"))
