"""Texts in the history about changes of delay rules: `delay rule reminder added: carts -1d-> carts-left`."""

from __future__ import annotations

import re
from typing import NamedTuple

from light_scheduler.durations import format_duration
from light_scheduler.model import DelayRule

_WHOLE = re.compile(r"delay rule (\S+) (?:added: |removed: it was )(\S+) -\S+-> (\S+)")
_IN_PARTS = re.compile(r"delay rule (\S+): (.+)")
_PART = re.compile(r"(source|target) \S+ -> ([^\s,]+)")


class RuleChange(NamedTuple):
    """The topics of a rule after a change, or of a removed rule. None for a topic that did not change."""

    name: str
    source: str | None
    target: str | None


def put(before: DelayRule | None, rule: DelayRule) -> str:
    """Describe the change of a rule: `delay rule reminder: delay 1d -> 2d`. `before` is None if the rule is new."""
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
    """Describe the removal of a rule."""
    return f"delay rule {rule.name} removed: it was {rule}"


def read_rule_change(reason: str) -> RuleChange | None:
    """Parse the change of a rule from the reason of an event; None if it is about something else."""
    if (whole := _WHOLE.fullmatch(reason)) is not None:
        return RuleChange(*whole.groups())
    if (in_parts := _IN_PARTS.fullmatch(reason)) is None:
        return None
    parts = dict(_PART.findall(in_parts[2]))
    return RuleChange(in_parts[1], parts.get("source"), parts.get("target"))
