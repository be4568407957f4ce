"""Commands that people copy: complete, and safe to paste into a shell."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli, lost_topics
from light_scheduler.kafka import topic_admin
from light_scheduler.kafka.topic_commands import (
    configure_topic_command,
    create_topics_command,
    even_partitions_command,
    grow_topic_command,
)
from light_scheduler.settings import Settings, load_settings
from light_scheduler.settings.values import CommandsTopic

LOGIN = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_username": "Ann O'Neil",
    "sasl_password": "not-for-a-shell",
    "ssl_ca": "/certificates/my ca.pem",
    "ssl_check_hostname": "false",
}


def settings(**options: Any) -> Settings:
    return load_settings({"app_id": "app", "broker": "kafka://kafka-1:9092", **options}, environment={})


def test_a_command_names_application_and_broker_even_where_they_are_the_defaults() -> None:
    grow = grow_topic_command(load_settings({}, environment={}), "orders", 6)
    assert grow == (
        "light-scheduler topics grow --partitions 6 --commands-topic orders --app-id light-scheduler "
        "--broker kafka://127.0.0.1:9092"
    )


def test_topics_are_created_with_every_setting_that_decides_what_they_are() -> None:
    create = create_topics_command(settings(commands_topics="orders:json,later:etf1", replication_factor="3"))
    assert create == (
        "light-scheduler topics create --app-id app --broker kafka://kafka-1:9092 "
        "--commands-topics orders:json,later:etf1 --replication-factor 3"
    )


def test_a_commands_topic_is_created_again_with_the_partitions_of_its_changelog() -> None:
    given = settings(commands_topics="orders:json,later:json,new:json", partitions=5)
    changelog = given.topics.changelog("orders")
    create = "light-scheduler topics create --partitions {} --app-id app"
    assert create_topics_command(given, {changelog: 12, "later": 20}).startswith(create.format(12))
    assert create_topics_command(given, {changelog: 3, "later": 20}).startswith(create.format(5))  # `new` gets them
    assert create_topics_command(given, {changelog: 3, "later": 20, "new": 5}).startswith(create.format(3))
    assert create_topics_command(given, {changelog: 3, "orders": 2}).endswith(" --partitions 5")


def test_a_command_has_the_login_and_no_secret() -> None:
    given = settings(**LOGIN)
    assert shlex.split(grow_topic_command(given, "app-commands", 6))[-10:] == [
        "--security-protocol",
        "SASL_SSL",
        "--sasl-mechanism",
        "SCRAM-SHA-512",
        "--sasl-username",
        "Ann O'Neil",
        "--ssl-ca",
        "/certificates/my ca.pem",
        "--ssl-check-hostname",
        "false",
    ]


def test_kafkas_own_tools_log_in_where_that_is_needed() -> None:
    change = "--alter --topic app-history --add-config cleanup.policy=delete"
    plain = configure_topic_command(settings(), "app-history", "cleanup.policy=delete")
    assert plain == f"kafka-configs.sh --bootstrap-server kafka-1:9092 {change}"
    secured = configure_topic_command(settings(**LOGIN), "app-history", "cleanup.policy=delete")
    servers = "--bootstrap-server kafka-1:9092"
    assert secured == f"kafka-configs.sh {servers} --command-config admin.properties {change}"


@pytest.mark.parametrize(
    ("dialect", "commands", "changelog", "start", "end"),
    [
        ("native", 6, 4, "light-scheduler topics grow --partitions 6 --commands-topic later ", "later:native"),
        ("native", 4, 6, "light-scheduler topics grow --partitions 6 --commands-topic later ", "later:native"),
        ("skyuk", 6, 4, "kafka-topics.sh ", " --alter --topic app-later-schedules-changelog-3 --partitions 6"),
        ("light4j", 4, 6, "kafka-topics.sh ", " --alter --topic later --partitions 6"),
    ],
)
def test_the_smaller_of_two_topics_gets_as_many_partitions_as_the_other(
    dialect: str, commands: int, changelog: int, start: str, end: str
) -> None:
    given = settings(commands_topics=f"later:{dialect}")
    [source] = given.inputs
    assert source == CommandsTopic("later", dialect)
    command = even_partitions_command(given, source, commands, changelog)
    assert command.startswith(start)
    assert command.endswith(end)


def test_a_command_can_be_given_as_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = settings(commands_topics="orders:json,later:etf1", partitions="7", **LOGIN)
    seen: list[Settings] = []

    def create(settings: Settings, *, partitions_requested: bool, lost: dict[str, int]) -> topic_admin.TopicsReport:
        assert (partitions_requested, lost) == (True, {})
        seen.append(settings)
        return topic_admin.TopicsReport((), ())

    monkeypatch.setattr(topic_admin, "create_topics", create)
    monkeypatch.setattr(lost_topics, "partitions_of_lost_topics", lambda *_: {})
    words = shlex.split(create_topics_command(given))[1:]
    password = {"LIGHT_SCHEDULER_SASL_PASSWORD": LOGIN["sasl_password"]}
    result = CliRunner().invoke(cli, [*words, "--json"], env=password, catch_exceptions=False)
    assert (result.exit_code, seen) == (0, [given])
