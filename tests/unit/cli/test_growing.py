"""Which topics can grow, and what is said of how far that is."""

from __future__ import annotations

import pytest

from light_scheduler.cli import growing
from light_scheduler.cli.growing import grow, progress_of, topic_to_grow
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


@pytest.mark.parametrize(
    ("commands", "changelog", "noted", "grows"),
    [
        (6, 4, None, True),
        (6, 4, Partitioning(5, 4), True),  # schedules still move from the last time
        (6, 6, None, False),
        (4, 4, None, False),
        (7, 4, None, False),
        (4, 4, Partitioning(4), True),
        (5, 5, Partitioning(5, 4), False),
    ],
)
def test_a_changelog_catches_up_with_its_topic_without_a_worker_that_notes_where_keys_belong(
    monkeypatch: pytest.MonkeyPatch, commands: int, changelog: int, noted: Partitioning | None, grows: bool
) -> None:
    """No worker starts before: it would need a changelog partition for each partition of the topic."""
    grown: list[tuple[str, int]] = []
    counts = {"app-commands": commands, "app-schedules-changelog": changelog}
    monkeypatch.setattr(growing, "admin_client", lambda _: None)
    monkeypatch.setattr(growing, "partition_counts", lambda *_: counts)
    monkeypatch.setattr(growing, "partitioning_of", lambda *_: noted)
    monkeypatch.setattr(growing, "grow_topic", lambda _, topic, partitions: grown.append((topic, partitions)))
    settings = load_settings({"app_id": "app"}, environment={})
    if grows:
        grow(settings, "app-commands", 6)
        assert grown == [("app-commands", 6)]
    else:
        with pytest.raises(ConfigurationError, match="cannot be raised"):
            grow(settings, "app-commands", 6)
        assert grown == []
