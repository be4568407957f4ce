"""The topics an application needs, and what counts as wrong with those it has."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.kafka.topic_admin import topic_findings
from light_scheduler.kafka.topic_plan import MIB, TopicSpec, topic_plan
from light_scheduler.model.topic_configuration import TopicConfiguration, configuration_of
from light_scheduler.settings import Settings, load_settings

HERE = "--app-id app --broker kafka://127.0.0.1:9092"


def settings(**options: Any) -> Settings:
    return load_settings({"app_id": "app", **options}, environment={})


def plan(existing: dict[str, int] | None = None, **options: Any) -> dict[str, TopicSpec]:
    return {spec.name: spec for spec in topic_plan(settings(**options), existing)}


def as_planned(**options: Any) -> tuple[dict[str, int], dict[str, TopicConfiguration]]:
    specs = plan(**options)
    return {name: spec.partitions for name, spec in specs.items()}, {
        name: configuration_of(spec.config_values()) for name, spec in specs.items()
    }


def test_every_topic_of_the_application_is_planned() -> None:
    assert set(plan()) == {
        "app-commands",
        "app-schedules-changelog",
        "app-history",
        "app-results",
        "app-idempotency",
        "app-dead-letters",
        "app-forecast",
        "app-tenants",
        "app-delays",
        "app-delay-positions",
        "app-loads",
    }


def test_every_commands_topic_has_a_changelog_of_its_own() -> None:
    names = set(plan(commands_topics="app-commands,orders:json"))
    assert {"app-commands", "app-schedules-changelog", "orders", "app-orders-schedules-changelog-3"} <= names


def test_a_topic_of_karafka_has_a_states_topic_with_as_many_partitions() -> None:
    states = plan({"later": 7}, commands_topics="later:karafka,other:etf1")["later_states"]
    assert (states.partitions, states.cleanup_policy, states.is_of_another) == (7, "compact", True)
    assert "other_states" not in plan(commands_topics="later:karafka,other:etf1")


def test_a_changelog_has_as_many_partitions_as_the_commands_topic_that_is_there() -> None:
    specs = plan({"orders": 7}, commands_topics="app-commands,orders:json", partitions=3)
    assert specs["app-orders-schedules-changelog-3"].partitions == 7
    assert specs["app-schedules-changelog"].partitions == 3


def test_a_missing_commands_topic_has_as_many_partitions_as_the_changelog_that_is_there() -> None:
    existing = {"app-schedules-changelog": 12, "orders": 3}
    specs = plan(existing, commands_topics="app-commands,orders:json", partitions=5)
    names = ("app-commands", "app-schedules-changelog", "orders", "app-orders-schedules-changelog-3", "app-history")
    assert [specs[name].partitions for name in names] == [12, 12, 3, 3, 5]


def test_a_missing_commands_topic_has_the_partitions_that_its_schedules_are_distributed_over() -> None:
    existing = {"app-schedules-changelog": 12, "app-orders-schedules-changelog-3": 6}
    given = settings(commands_topics="app-commands,orders:json")
    specs = {spec.name: spec.partitions for spec in topic_plan(given, existing, {"app-commands": 4})}
    assert (specs["app-commands"], specs["orders"]) == (4, 6)


def test_a_missing_commands_topic_is_found_with_the_partitions_that_it_must_have() -> None:
    counts, configs = as_planned(partitions=12)
    del counts["app-commands"]
    [finding] = topic_findings(settings(partitions=5), counts, configs)
    assert (finding.topic, finding.kind) == ("app-commands", "missing")
    assert finding.fix == f"light-scheduler topics create --partitions 12 {HERE}"


def test_a_changelog_is_only_compacted_so_that_nothing_pending_expires() -> None:
    configs = plan()["app-schedules-changelog"].config_values()
    assert configs["cleanup.policy"] == "compact"
    assert "retention.ms" not in configs
    assert configs["delete.retention.ms"] == str(24 * 3_600_000)


def test_what_holds_a_command_is_larger_than_commands_may_be() -> None:
    sizes: list[dict[str, Any]] = [{}, {"max_payload_bytes": 50 * MIB}]
    for options in sizes:
        specs = plan(**options)
        commands = specs["app-commands"].largest_record
        changelog = specs["app-schedules-changelog"].largest_record
        dead_letters = specs["app-dead-letters"].largest_record
        assert commands is not None
        assert changelog is not None
        assert dead_letters is not None
        assert max(10 * MIB, settings(**options).max_payload_bytes + 1) <= commands < dead_letters < changelog


def test_with_three_copies_two_must_have_a_record_before_it_is_acknowledged() -> None:
    assert all(spec.config_values()["min.insync.replicas"] == "2" for spec in plan(replication_factor=3).values())
    assert not any("min.insync.replicas" in spec.config_values() for spec in plan(replication_factor=1).values())


def test_every_configuration_says_why() -> None:
    assert all(config.reason for spec in plan(replication_factor=3).values() for config in spec.configs)


def test_topics_as_planned_have_no_findings() -> None:
    assert topic_findings(settings(), *as_planned()) == []


def test_a_missing_topic_is_found_with_the_command_that_makes_it() -> None:
    counts, configs = as_planned()
    del counts["app-history"]
    [finding] = topic_findings(settings(), counts, configs)
    assert (finding.topic, finding.kind) == ("app-history", "missing")
    assert finding.fix == f"light-scheduler topics create {HERE}"


def test_a_changelog_with_too_few_partitions_is_the_one_to_enlarge() -> None:
    counts, configs = as_planned()
    counts["app-schedules-changelog"] = 2
    [finding] = topic_findings(settings(), counts, configs)
    assert finding.kind == "partitions"
    assert finding.fix == f"light-scheduler topics grow --partitions 4 --commands-topic app-commands {HERE}"


def test_commands_with_too_few_partitions_are_the_ones_to_enlarge() -> None:
    counts, configs = as_planned()
    counts["app-schedules-changelog"] = 6
    [finding] = topic_findings(settings(), counts, configs)
    assert finding.fix == f"light-scheduler topics grow --partitions 6 --commands-topic app-commands {HERE}"
    assert finding.status == "fail"
    assert finding.problem.endswith("Schedules in its partitions 4 and up do not fire")


@pytest.mark.parametrize(
    ("dialect", "commands", "fix", "says"),
    [
        ("json", 4, "light-scheduler topics grow --partitions 5 --commands-topic later", "more than later with 4"),
        ("json", 6, "light-scheduler topics grow --partitions 6 --commands-topic later", "fewer than later with 6"),
        ("karafka", 4, "--alter --topic later --partitions 5", "Ask the owner of later before"),
        ("etf1", 6, "--alter --topic app-later-schedules-changelog-3 --partitions 6", "fewer than later with 6"),
    ],
)
def test_topics_of_other_schedulers_get_partitions_from_kafkas_own_tool(
    dialect: str, commands: int, fix: str, says: str
) -> None:
    given = settings(commands_topics=f"later:{dialect}", partitions=5)
    counts = {spec.name: spec.partitions for spec in topic_plan(given)} | {"later": commands}
    [finding] = topic_findings(given, counts, {})
    assert (finding.topic, finding.kind) == ("app-later-schedules-changelog-3", "partitions")
    assert fix in finding.fix
    assert finding.fix.startswith("light-scheduler" if dialect == "json" else "kafka-topics.sh")
    assert says in finding.problem


def test_another_number_of_history_partitions_is_a_matter_of_taste() -> None:
    counts, configs = as_planned()
    counts["app-history"] = 1
    assert topic_findings(settings(), counts, configs) == []


def test_a_changelog_that_also_deletes_would_lose_schedules() -> None:
    counts, configs = as_planned()
    changelog = configs["app-schedules-changelog"]
    configs["app-schedules-changelog"] = changelog._replace(cleanup_policy="compact,delete")
    [finding] = topic_findings(settings(), counts, configs)
    assert finding.kind == "cleanup.policy"
    assert "cleanup.policy=compact" in finding.fix


def test_a_topic_that_takes_too_small_records_is_found() -> None:
    counts, configs = as_planned()
    configs["app-commands"] = configs["app-commands"]._replace(max_message_bytes=1_048_588)
    [finding] = topic_findings(settings(), counts, configs)
    assert finding.kind == "max.message.bytes"
    assert f"max.message.bytes={10 * MIB}" in finding.fix


def test_a_changelog_that_may_be_compacted_at_once_is_advised_against_and_no_failure() -> None:
    counts, configs = as_planned()
    configs["app-schedules-changelog"] = configs["app-schedules-changelog"]._replace(min_compaction_lag_ms=59_999)
    [finding] = topic_findings(settings(), counts, configs)
    assert (finding.kind, finding.status) == ("min.compaction.lag.ms", "warn")
    assert "min.compaction.lag.ms is 59999" in finding.problem
    assert finding.fix.endswith("--alter --topic app-schedules-changelog --add-config min.compaction.lag.ms=60000")


def test_a_changelog_that_is_compacted_later_than_planned_has_no_findings() -> None:
    counts, configs = as_planned()
    configs["app-schedules-changelog"] = configs["app-schedules-changelog"]._replace(min_compaction_lag_ms=60_001)
    assert topic_findings(settings(), counts, configs) == []


def test_marks_of_loads_are_never_deleted() -> None:
    loads = plan()["app-loads"]
    assert (loads.partitions, loads.cleanup_policy) == (1, "compact")
    assert "app-loads" in settings().internal_topics


@pytest.mark.parametrize(("dialect", "kinds"), [("etf1", []), ("karafka", []), ("json", ["cleanup.policy"])])
def test_only_commands_topics_of_other_schedulers_may_be_compacted(dialect: str, kinds: list[str]) -> None:
    given = settings(commands_topics=f"later:{dialect}")
    specs = topic_plan(given)
    counts = {spec.name: spec.partitions for spec in specs}
    configs = {spec.name: configuration_of(spec.config_values()) for spec in specs}
    configs["later"] = configs["later"]._replace(cleanup_policy="compact")
    assert [finding.kind for finding in topic_findings(given, counts, configs)] == kinds


@pytest.mark.parametrize(("dialect", "status"), [("etf1", "warn"), ("karafka", "warn"), ("json", "fail")])
def test_commands_topics_of_other_schedulers_may_take_small_records_only(dialect: str, status: str) -> None:
    given = settings(commands_topics=f"later:{dialect}")
    specs = topic_plan(given)
    counts = {spec.name: spec.partitions for spec in specs}
    configs = {spec.name: configuration_of(spec.config_values()) for spec in specs}
    configs["later"] = configs["later"]._replace(max_message_bytes=1_048_588)
    [finding] = topic_findings(given, counts, configs)
    assert (finding.topic, finding.kind, finding.status) == ("later", "max.message.bytes", status)
