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
    ("commands", "changelog", "noted", "is_empty", "grows"),
    [
        (6, 4, None, True, True),
        (6, 4, None, False, False),  # made again with more partitions: schedules are where keys belonged before
        (6, 4, Partitioning(4), False, True),
        (6, 5, Partitioning(5, 4), False, True),  # schedules still move from the last time, and the sixth waits
        (6, 6, None, True, False),
        (4, 4, None, True, False),
        (7, 4, None, True, False),
        (4, 4, Partitioning(4), False, True),
        (5, 5, Partitioning(5, 4), False, False),
    ],
)
def test_a_changelog_catches_up_with_its_topic_only_if_schedules_can_follow_their_keys(
    monkeypatch: pytest.MonkeyPatch,
    commands: int,
    changelog: int,
    noted: Partitioning | None,
    is_empty: bool,
    grows: bool,
) -> None:
    """No worker starts before: it would need a changelog partition for each partition of the topic."""
    grown = given_topics(monkeypatch, commands, changelog, noted, is_empty)
    settings = load_settings({"app_id": "app"}, environment={})
    if grows:
        grow(settings, "app-commands", 6)
        assert grown == [("app-commands", 6)]
    else:
        with pytest.raises(ConfigurationError, match="cannot be raised"):
            grow(settings, "app-commands", 6)
        assert grown == []


def test_the_refusal_names_the_command_that_creates_the_topic_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    given_topics(monkeypatch, commands=8, changelog=5, noted=None, is_empty=False)
    settings = load_settings({"app_id": "app", "partitions": 8}, environment={})
    with pytest.raises(ConfigurationError, match="Delete app-commands") as refused:
        grow(settings, "app-commands", 8)
    create = "light-scheduler topics create --partitions 5 --app-id app"
    assert f"create it as it was (`{create} " in refused.value.reason


def given_topics(
    monkeypatch: pytest.MonkeyPatch, commands: int, changelog: int, noted: Partitioning | None, is_empty: bool
) -> list[tuple[str, int]]:
    """Have `grow` find these topics; return those that it has grown."""
    grown: list[tuple[str, int]] = []
    counts = {"app-commands": commands, "app-schedules-changelog": changelog}
    monkeypatch.setattr(growing, "admin_client", lambda _: None)
    monkeypatch.setattr(growing, "partition_counts", lambda *_: counts)
    monkeypatch.setattr(growing, "partitioning_of", lambda *_: noted)
    monkeypatch.setattr(growing, "is_empty", lambda *_: is_empty)
    monkeypatch.setattr(growing, "grow_topic", lambda _, topic, partitions: grown.append((topic, partitions)))
    return grown
