"""Delay rules: each forwards every record of a topic to another one, a fixed time after its timestamp."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from light_scheduler.durations import format_duration, parse_duration

LONGEST_DELAY = 3_650 * 86_400_000
"""In ms. Longer than any retention, and far below the range of timestamps."""

RULE_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


class RuleError(ValueError):
    """A rule is invalid. `field` is the invalid part: name, source, delay or target."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class DelayRule(msgspec.Struct, frozen=True):
    """Every record of `source` goes to `target`, `delay` ms after its timestamp."""

    name: str
    source: str
    delay: int
    target: str

    def __str__(self) -> str:
        return f"{self.source} -{format_duration(self.delay)}-> {self.target}"


def parse_rule(
    name: str, source: str, delay: str, target: str, *, read: Callable[[str], int] = parse_duration
) -> DelayRule:
    """Parse the parts of a rule; `read` parses the delay. Raises RuleError."""
    if not RULE_NAME.fullmatch(name):
        raise RuleError("name", f"{name!r} must be 1 to 100 letters, digits, '.', '_' and '-'")
    for part, topic in (("source", source), ("target", target)):
        if not _TOPIC.fullmatch(topic):
            raise RuleError(part, f"{topic!r} is not a topic name: use 1 to 249 letters, digits, '.', '_' and '-'")
    try:
        ms = read(delay)
    except ValueError as error:
        raise RuleError("delay", str(error)) from None
    if not 1 <= ms <= LONGEST_DELAY:
        raise RuleError("delay", f"{delay!r} must be 1ms to {format_duration(LONGEST_DELAY)}")
    return DelayRule(name, source, ms, target)


def check_rule(rule: DelayRule, others: Iterable[DelayRule], reserved: Collection[str]) -> None:
    """Raise RuleError if a rule conflicts with others, or uses a topic that is not for users.

    A rule with the same name among `others` does not count, since it will be replaced.
    """
    for part, topic in (("source", rule.source), ("target", rule.target)):
        if topic in reserved:
            raise RuleError(part, f"{topic} belongs to the scheduler: delay rules cannot use it")
        if topic.startswith("__"):
            raise RuleError(part, f"{topic} belongs to Kafka: delay rules cannot use it")
    way = _way_back(rule, [other for other in others if other.name != rule.name])
    if way is not None:
        raise RuleError("target", f"creates a loop: {way}. Records would be forwarded forever")


@dataclass(frozen=True)
class RuleBook:
    """Rules in force, and refused rules with the reason, by name. `configured` rules cannot be changed at run time."""

    rules: Mapping[str, DelayRule] = field(default_factory=dict)
    refused: Mapping[str, tuple[DelayRule, str]] = field(default_factory=dict)
    configured: frozenset[str] = frozenset()


def rule_book(configured: Iterable[DelayRule], stored: Iterable[DelayRule], reserved: Collection[str] = ()) -> RuleBook:
    """Merge rules in an order that gives the same result on each worker. Configured rules come first.

    A stored rule is refused if it conflicts with earlier rules, and ignored if a configured rule has the same name.
    """
    rules = {rule.name: rule for rule in configured}
    refused: dict[str, tuple[DelayRule, str]] = {}
    names = frozenset(rules)
    for rule in stored:
        if rule.name in names:
            continue
        try:
            check_rule(rule, rules.values(), reserved)
        except RuleError as error:
            refused[rule.name] = rule, str(error)
        else:
            rules[rule.name] = rule
    return RuleBook(rules, refused, names)


def _way_back(rule: DelayRule, others: list[DelayRule]) -> str | None:
    """Return a path from a rule's target back to its source, as text; None if there is none."""
    ways = {rule.target: str(rule)}
    todo = [rule.target]
    while todo:
        topic = todo.pop()
        if topic == rule.source:
            return ways[topic]
        for other in others:
            if other.source == topic and other.target not in ways:
                ways[other.target] = f"{ways[topic]} -{format_duration(other.delay)}-> {other.target}"
                todo.append(other.target)
    return None
