"""The least rights, and the commands that give them."""

from __future__ import annotations

import shlex

import pytest
from support.least_rights import worker_rights

from light_scheduler.kafka.missing_rights import needed_rights
from light_scheduler.kafka.rights import Right, acl_commands
from light_scheduler.settings import load_settings


def test_a_command_names_each_operation_and_a_prefix() -> None:
    rights = [
        Right("topic", "app", ("Read", "Write"), "prefixed"),
        Right("group", "app-delays/sources", ("Read",)),
        Right("cluster", "kafka-cluster", ("DescribeConfigs",)),
    ]
    begin = "kafka-acls.sh --bootstrap-server k:9 --command-config admin.properties --add --allow-principal"
    assert acl_commands(rights, "User:CN=worker, OU=jobs", "k:9") == [
        f"{begin} 'User:CN=worker, OU=jobs' --operation Read --operation Write --topic app "
        "--resource-pattern-type prefixed",
        f"{begin} 'User:CN=worker, OU=jobs' --operation Read --group 'app-delays/sources'",
        f"{begin} 'User:CN=worker, OU=jobs' --operation DescribeConfigs --cluster",
    ]


def test_a_worker_needs_what_begins_with_its_name_and_what_it_is_configured_to_touch() -> None:
    settings = load_settings(
        {"app_id": "app", "commands_topics": "app-commands,orders:json", "delays": "slow=in:5m:out"}, environment={}
    )
    assert worker_rights(settings, ["reminders"]) == [
        Right("topic", "app", ("Read", "Write", "DescribeConfigs"), "prefixed"),
        Right("group", "app", ("Read",), "prefixed"),
        Right("transactional-id", "app", ("Write",), "prefixed"),
        Right("topic", "orders", ("Read", "Write")),
        Right("topic", "in", ("Read", "DescribeConfigs")),
        Right("topic", "reminders", ("Write", "DescribeConfigs")),
        Right("topic", "out", ("Write", "DescribeConfigs")),
    ]


def test_a_worker_only_writes_to_the_states_topic_of_karafka() -> None:
    settings = load_settings({"app_id": "app", "commands_topics": "later:karafka"}, environment={})
    assert needed_rights(settings, ())["later_states"] == ["Write"]
    assert Right("topic", "later_states", ("Write",)) in worker_rights(settings)


@pytest.mark.parametrize(
    "name", ["CORP\\scheduler", "CN=O'Brien,O=X", "a`b`", "a b", "CN=w,O=x", "plain", "~", "a|b", "*"]
)
def test_a_shell_reads_a_principal_as_it_is(name: str) -> None:
    (command,) = acl_commands([Right("topic", "t", ("Read",))], f"User:{name}", "127.0.0.1:9092")
    words = shlex.split(command)
    assert words[words.index("--allow-principal") + 1] == f"User:{name}"
