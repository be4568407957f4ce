"""Where delay rules forward messages to: a message that a rule has forwarded is the same in every header.

The history has each change of a rule; workers have others in their configuration. What rules were counts as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from light_scheduler.model import DelayRule
from light_scheduler.wire.delay_changes import RuleChange

Routes = tuple[tuple[str, str], ...]
"""The source and the target of a rule as it was at different times, the last one at the end."""


class Forwarding:
    """What rules forward, by any number of them one after the other."""

    def __init__(self, routes: Iterable[tuple[str, str]] = ()) -> None:
        targets: dict[str, set[str]] = {}
        for source, target in routes:
            targets.setdefault(source, set()).add(target)
        self._reached = {source: _reached(source, targets) for source in targets}
        self._targets = frozenset().union(*targets.values())

    def leads(self, source: str | None, target: str) -> bool:
        """Return whether messages of one topic come to another one."""
        return target in self._reached.get(source or "", ())

    def leads_to(self, topic: str) -> bool:
        """Return whether messages of any topic come to one."""
        return topic in self._targets


NOWHERE = Forwarding()


def routes_after(changes: Iterable[RuleChange], before: Mapping[str, Routes]) -> dict[str, Routes]:
    """Return the routes of rules, by name, after changes in the order of their log, given those before.

    A change of one topic says nothing about the other one, if the history has lost what that was.
    """
    found = dict(before)
    for change in changes:
        routes = found.get(change.name, ())
        last_source, last_target = routes[-1] if routes else (None, None)
        source, target = change.source or last_source, change.target or last_target
        if source is not None and target is not None:
            found[change.name] = _with(routes, (source, target))
    return found


def routes_with(configured: Iterable[DelayRule], before: Mapping[str, Routes]) -> dict[str, Routes]:
    """Return the routes of rules together with those of the configuration."""
    return routes_after((RuleChange(rule.name, rule.source, rule.target) for rule in configured), before)


def _with(routes: Routes, last: tuple[str, str]) -> Routes:
    return (*(route for route in routes if route != last), last)


def _reached(source: str, targets: Mapping[str, set[str]]) -> frozenset[str]:
    found: set[str] = set()
    left = [source]
    while left:
        new = targets.get(left.pop(), set()) - found
        found |= new
        left += new
    return frozenset(found - {source})
