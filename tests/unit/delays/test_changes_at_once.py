"""Delay rules that two workers change at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from light_scheduler.clock import SystemClock
from light_scheduler.delays import Delays
from light_scheduler.kafka.compacted import Change
from light_scheduler.model import DelayRule, Requester, RuleError
from light_scheduler.settings import load_settings
from light_scheduler.wire.delays import encode_rule

BY = Requester("test", "192.0.2.7")
THERE, BACK = DelayRule("there", "carts", 1_000, "left"), DelayRule("back", "left", 1_000, "carts")


class RulesTopic:
    """The topic of the rules. What another worker does `meanwhile` is read when a change has begun."""

    def __init__(self, *rules: DelayRule) -> None:
        self.is_loaded = True
        self.entries = dict(map(encode_rule, rules))
        self.meanwhile: Callable[[], object] = lambda: None
        self.changes = 0
        self.read: Callable[[], None] = lambda: None

    async def change(self, make: Callable[[], Change]) -> None:
        self.meanwhile()
        self.read()
        for key, value in make().entries:
            self.entries.pop(key, None)
            if value is not None:
                self.entries[key] = value
        self.changes += 1
        self.read()


def worker(topic: RulesTopic) -> Delays:
    delays: Any = Delays(load_settings({}, environment={}), SystemClock())
    delays._log, topic.read = topic, delays._rules_changed
    topic.read()
    return delays  # type: ignore[no-any-return]


async def test_a_rule_that_makes_a_loop_with_one_that_another_worker_has_just_added_is_refused() -> None:
    topic = RulesTopic()
    delays = worker(topic)
    topic.meanwhile = lambda: topic.entries.update([encode_rule(THERE)])
    with pytest.raises(RuleError, match="creates a loop"):
        await delays.put(BACK, by=BY)
    assert (list(delays.book.rules), topic.changes) == (["there"], 0)


async def test_a_rule_fits_in_once_another_worker_has_removed_what_it_made_a_loop_with() -> None:
    topic = RulesTopic(THERE)
    delays = worker(topic)
    topic.meanwhile = topic.entries.clear
    assert await delays.put(BACK, by=BY) is True
    assert list(delays.book.rules) == ["back"]


async def test_a_rule_that_another_worker_has_just_added_is_not_new_and_changes_nothing() -> None:
    topic = RulesTopic()
    delays = worker(topic)
    topic.meanwhile = lambda: topic.entries.update([encode_rule(THERE)])
    assert await delays.put(THERE, by=BY) is False
    assert topic.changes == 0


async def test_a_rule_that_another_worker_has_just_removed_is_not_there_to_be_removed() -> None:
    topic = RulesTopic(THERE)
    delays = worker(topic)
    topic.meanwhile = topic.entries.clear
    assert await delays.remove("there", by=BY) is False
    assert topic.changes == 0


async def test_a_rule_that_another_worker_has_just_added_can_be_removed() -> None:
    topic = RulesTopic()
    delays = worker(topic)
    topic.meanwhile = lambda: topic.entries.update([encode_rule(THERE)])
    assert await delays.remove("there", by=BY) is True
    assert (delays.book.rules, topic.changes) == ({}, 1)
