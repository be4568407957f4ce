"""Turns of partitions, where more topics are named than are remembered."""

from __future__ import annotations

from collections import Counter

from light_scheduler.lanes.context.turns import _MOST_TOPICS, Turns
from light_scheduler.model import Once, ScheduleCommand, Target
from light_scheduler.wire import partition_for

AT = 1_767_225_600_000


def taken(turns: Turns, tenant: str, topic: str, offset: int, partitions: int = 8) -> int:
    """Accept a message of a tenant; return the partition that it goes to."""
    command = ScheduleCommand(tenant, "id", b"key", Once(AT), Target(topic), b"", [], 0, offset, AT)
    key = turns.key(command)
    turns.accept(tenant, Target(topic, partition_key=key))
    return partition_for(key, partitions)


def test_a_tenant_that_names_very_many_topics_still_uses_all_partitions() -> None:
    turns = Turns()
    rounds = range(3 * (_MOST_TOPICS + 1))
    places = Counter(taken(turns, "acme", f"t-{number % (_MOST_TOPICS + 1)}", number) for number in rounds)
    assert len(places) == 8
    assert max(places.values()) < 2 * min(places.values())


def test_nor_does_it_disturb_the_turns_of_others() -> None:
    turns = Turns()
    first = taken(turns, "bolt", "orders", 0)
    for number in range(1, 5):
        for other in range(_MOST_TOPICS + 1):
            taken(turns, "acme", f"t-{other}", number)
        assert taken(turns, "bolt", "orders", number) == (first + number) % 8
