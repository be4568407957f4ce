"""What the history tells of changes of delay rules."""

from __future__ import annotations

from light_scheduler.delays import changes
from light_scheduler.model import DelayRule

RULE = DelayRule("reminder", "carts", 86_400_000, "carts-left")


def test_a_new_rule_is_told_as_a_whole() -> None:
    assert changes.put(None, RULE) == "delay rule reminder added: carts -1d-> carts-left"


def test_a_rule_that_is_replaced_is_told_by_what_differs() -> None:
    later = DelayRule("reminder", "carts", 172_800_000, "left")
    assert changes.put(RULE, later) == "delay rule reminder: delay 1d -> 2d, target carts-left -> left"
    assert changes.put(RULE, RULE) == "delay rule reminder: set again, unchanged"


def test_a_rule_that_is_removed_is_told_as_it_was() -> None:
    assert changes.removed(RULE) == "delay rule reminder removed: it was carts -1d-> carts-left"
