"""What workers need the right to."""

from __future__ import annotations

from light_scheduler.kafka.missing_rights import needed_rights, problem_of_ids
from light_scheduler.model import DelayRule
from light_scheduler.settings import load_settings

READ, WRITE, DESCRIBE_CONFIGS = "Read", "Write", "DescribeConfigs"
APP = load_settings({"app_id": "app"}, environment={})


def test_workers_write_every_topic_and_read_what_they_go_by() -> None:
    settings = load_settings({"app_id": "app", "commands_topics": "app-commands,orders:json"}, environment={})
    rights = {name: set(needed) for name, needed in needed_rights(settings, ()).items()}
    for commands, changelog in (
        ("app-commands", "app-schedules-changelog"),
        ("orders", "app-orders-schedules-changelog-3"),
    ):
        assert rights.pop(commands) == {READ, WRITE}, "commands are passed on, and come over HTTP"
        assert rights.pop(changelog) == {READ, WRITE, DESCRIBE_CONFIGS}
    assert {"app-history", "app-results", "app-dead-letters", "app-tenants"} <= rights.keys()
    assert all(needed == {READ, WRITE} for needed in rights.values()), "they are shown over HTTP, or followed"


def test_topics_of_delay_rules_are_read_and_written() -> None:
    rights = needed_rights(APP, [DelayRule("slow", "in", 5, "between"), DelayRule("slower", "between", 5, "out")])
    assert (rights["in"], rights["out"]) == ([READ, DESCRIBE_CONFIGS], [WRITE])
    assert set(rights["between"]) == {READ, WRITE, DESCRIBE_CONFIGS}


def test_targets_are_written_whatever_else_they_are() -> None:
    rights = needed_rights(APP, [DelayRule("slow", "bills", 5, "out")], ["orders", "bills", "app-commands"])
    assert rights["orders"] == [WRITE]
    assert set(rights["bills"]) == {READ, WRITE, DESCRIBE_CONFIGS}
    assert rights["app-commands"] == [READ, WRITE]


def test_spare_ids_without_a_right_are_told_from_all_of_them() -> None:
    ids = ["id", "id~1", "id~2", "id~3"]
    assert problem_of_ids(ids, set()) is None
    assert problem_of_ids(ids, set(ids)) == "no right WRITE on transactional id id"
    spares = problem_of_ids(ids, set(ids[1:])) or ""
    assert spares.startswith("no right WRITE on transactional ids id~1 to id~3, the spares of id: they look stuck")
    assert "An ACL for one literal id does not cover them" in spares
