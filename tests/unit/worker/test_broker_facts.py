"""What workers need the right to."""

from __future__ import annotations

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from light_scheduler.settings import load_settings
from light_scheduler.worker.broker_facts import needed_rights

READ, WRITE, DESCRIBE_CONFIGS = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS


def test_workers_write_every_topic_and_read_commands_and_changelogs() -> None:
    settings = load_settings({"app_id": "app", "commands_topics": "app-commands,orders:json"}, environment={})
    rights = {name: set(needed) for name, needed in needed_rights(settings).items()}
    for commands, changelog in (
        ("app-commands", "app-schedules-changelog"),
        ("orders", "app-orders-schedules-changelog"),
    ):
        assert rights.pop(commands) == {READ, WRITE}, "commands are passed on, and come over HTTP"
        assert rights.pop(changelog) == {READ, WRITE, DESCRIBE_CONFIGS}
    assert {"app-history", "app-results", "app-dead-letters"} <= rights.keys()
    assert all(needed == {WRITE} for needed in rights.values())
