"""Delay rules that are added while the service looks at the topics of those before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.clock import SystemClock
from light_scheduler.delays import Delays, service
from light_scheduler.model import DelayRule
from light_scheduler.model.delay import rule_book
from light_scheduler.settings import load_settings

FIRST, LATER = DelayRule("first", "carts", 1_000, "left"), DelayRule("later", "trials", 1_000, "mails")


class KnownTargets(dict[str, Any]):
    """Topics, of which only those are known that were resolved."""

    async def resolve(self, topics: set[str]) -> None:
        self.update({topic: SimpleNamespace(refusal=None) for topic in topics})


async def test_a_rule_that_comes_while_sources_are_subscribed_waits_for_the_next_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "LOOK_S", 0.0)
    monkeypatch.setattr(service, "topic_configuration", lambda *_: {})
    monkeypatch.setattr(service, "retention_problem", lambda rule, _: f"{rule.source} keeps too little")
    delays: Any = Delays(load_settings({}, environment={}), SystemClock())
    delays._targets, delays._log = KnownTargets(), SimpleNamespace(is_loaded=True)
    delays._book = rule_book((FIRST,), ())

    async def subscribe(topics: frozenset[str]) -> None:
        delays._book = rule_book((FIRST, LATER), ())

    delays._membership = SimpleNamespace(subscribe=subscribe, assigned=())
    await delays._keep_up()
    assert set(delays._warnings) == {FIRST}
    await delays._keep_up()
    assert set(delays._warnings) == {FIRST, LATER}
