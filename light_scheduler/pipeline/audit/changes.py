"""What the history tells of changes that bear on many schedules: when tenants were stopped, and the delay rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from light_scheduler.wire.delay_changes import read_rule_change

from .forwarding import Routes, routes_after
from .stops import Spans, spans_after, told_stops


class ToldChange(NamedTuple):
    """A change at an instant (UTC epoch ms), of a tenant or of none, and what the history says about it."""

    tenant: str
    at: int
    reason: str


class Changes(NamedTuple):
    """When tenants were stopped, and the routes of delay rules, by name."""

    stops: Mapping[str, Spans] = {}
    routes: Mapping[str, Routes] = {}

    def after(self, told: Sequence[ToldChange]) -> Changes:
        """Return what holds after changes in the order of their log."""
        rules = (change for each in told if not each.tenant and (change := read_rule_change(each.reason)) is not None)
        return Changes(spans_after(told_stops(told), self.stops), routes_after(rules, self.routes))


NO_CHANGES = Changes()
