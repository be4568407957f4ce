"""What the history tells of changes of delay rules."""

from __future__ import annotations

from light_scheduler.model import DelayRule
from light_scheduler.wire import delay_changes as changes
from light_scheduler.wire.delay_changes import RuleChange, read_rule_change

RULE = DelayRule("reminder", "carts", 86_400_000, "carts-left")


def test_a_new_rule_is_told_as_a_whole() -> None:
    assert changes.put(None, RULE) == "delay rule reminder added: carts -1d-> carts-left"


def test_a_rule_that_is_replaced_is_told_by_what_differs() -> None:
    later = DelayRule("reminder", "carts", 172_800_000, "left")
    assert changes.put(RULE, later) == "delay rule reminder: delay 1d -> 2d, target carts-left -> left"
    assert changes.put(RULE, RULE) == "delay rule reminder: set again, unchanged"


def test_a_rule_that_is_removed_is_told_as_it_was() -> None:
    assert changes.removed(RULE) == "delay rule reminder removed: it was carts -1d-> carts-left"


def test_the_topics_of_a_change_are_read_back() -> None:
    later = DelayRule("reminder", "carts", 172_800_000, "left")
    assert read_rule_change(changes.put(None, RULE)) == RuleChange("reminder", "carts", "carts-left")
    assert read_rule_change(changes.removed(RULE)) == RuleChange("reminder", "carts", "carts-left")
    assert read_rule_change(changes.put(RULE, later)) == RuleChange("reminder", None, "left")
    assert read_rule_change(changes.put(RULE, RULE)) == RuleChange("reminder", None, None)
    assert read_rule_change("tenant shop: active -> paused") is None
