"""Which topics can grow, and what is said of how far that is."""

from __future__ import annotations

import pytest

from light_scheduler.cli.growing import progress_of, topic_to_grow
from light_scheduler.errors import ConfigurationError
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.settings import load_settings

ALL = frozenset(range(4))


def test_the_only_topic_is_meant_unless_another_is_named() -> None:
    settings = load_settings({"app_id": "app"}, environment={})
    assert topic_to_grow(settings, None) == "app-commands"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (None, "name one of"),
        ("c", "does not have c"),
        ("b", "has the dialect etf1"),
    ],
)
def test_a_topic_that_cannot_grow_is_refused(name: str | None, reason: str) -> None:
    settings = load_settings({"app_id": "app", "commands_topics": "a,b:etf1"}, environment={})
    with pytest.raises(ConfigurationError, match=reason):
        topic_to_grow(settings, name)


@pytest.mark.parametrize(
    ("partitioning", "said"),
    [
        (None, "Waiting for a worker to notice the new partitions"),
        (Partitioning(2), "Waiting for a worker to notice the new partitions"),
        (Partitioning(4, 2, frozenset({0, 1, 2})), "3 of 4 partitions run"),
        (Partitioning(4, 2, ALL, frozenset({0})), "1 of 4 partitions have all of their schedules"),
        (Partitioning(4, 2, ALL, ALL), None),
        (Partitioning(4), None),
    ],
)
def test_it_is_said_what_is_still_to_come(partitioning: Partitioning | None, said: str | None) -> None:
    assert progress_of(partitioning, 4) == said
