"""Topics on a real broker: made once, as planned, and described as they are."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic, ResourceType  # type: ignore[attr-defined]
from support.application import Application
from support.placing import delete_topic
from support.reading import header, read_until
from support.topic_configs import configure
from support.waiting import eventually

from light_scheduler.cli import cli
from light_scheduler.cli.growing import grow, moved, partitioning_of
from light_scheduler.devkit.readiness import admin_client
from light_scheduler.devkit.waiting import wait_until
from light_scheduler.doctor.kafka_checks import check_application_topics
from light_scheduler.errors import BrokerError, BrokerUnreachable, ConfigurationError
from light_scheduler.kafka.compacted import CompactedTopic, followed
from light_scheduler.kafka.topic_admin import (
    check_topics,
    create_topics,
    grow_topic,
    is_empty,
    topic_configuration,
    topic_id,
    written_partitions,
)
from light_scheduler.kafka.topic_plan import topic_plan
from light_scheduler.lanes.growing.records import VALUE, TopicIncarnation, partitions_key
from light_scheduler.model import Outcome
from light_scheduler.model.topic_configuration import configuration_of
from light_scheduler.settings import Settings, load_settings
from light_scheduler.testing import Kafka
from light_scheduler.wire import partition_for

pytestmark = pytest.mark.integration

YEAR_2100 = 4_102_444_800_000
IDS = [f"s-{number}" for number in range(24)]
"""Some belong to each of four or six partitions, and some to different ones of these."""
assert all({partition_for(id.encode(), number) for id in IDS} == set(range(number)) for number in (4, 6))


@pytest.fixture
def settings(kafka: Kafka) -> Settings:
    app_id = f"topics-{uuid.uuid4().hex[:8]}"
    return load_settings({"app_id": app_id, "broker": kafka.bootstrap_servers, "partitions": 3}, environment={})


def test_created_topics_are_as_planned_and_a_second_call_changes_nothing(settings: Settings) -> None:
    names = tuple(spec.name for spec in topic_plan(settings))
    assert create_topics(settings).created == names
    again = create_topics(settings)
    assert (again.created, again.existing) == ((), names)
    assert check_topics(settings) == []
    admin = admin_client(settings.bootstrap_servers)
    for spec in topic_plan(settings):
        resource = ConfigResource(ResourceType.TOPIC, spec.name)
        in_force = admin.describe_configs([resource])[resource].result(60)
        assert {name: in_force[name].value for name in spec.config_values()} == spec.config_values()
        assert topic_configuration(settings.bootstrap_servers, spec.name) == configuration_of(
            {name: entry.value for name, entry in in_force.items()}
        )


def test_a_changelog_follows_the_commands_topic_that_is_there(settings: Settings) -> None:
    make_topic(settings, settings.topics.commands, partitions=5)
    create_topics(settings)
    admin = admin_client(settings.bootstrap_servers)
    changelog = settings.topics.changelog(settings.topics.commands)
    assert len(admin.list_topics(changelog, timeout=10).topics[changelog].partitions) == 5
    assert [finding.kind for finding in check_topics(settings)] == ["max.message.bytes"]  # the one made by hand


def test_wrong_topics_are_found(settings: Settings) -> None:
    make_topic(settings, settings.topics.commands, partitions=3)
    make_topic(settings, settings.topics.changelog(settings.topics.commands), partitions=2)
    create_topics(settings)
    kinds = {"partitions", "cleanup.policy", "max.message.bytes", "min.compaction.lag.ms"}
    assert {finding.kind for finding in check_topics(settings)} == kinds


def test_a_topic_made_anew_has_another_id(settings: Settings) -> None:
    name = f"{settings.app_id}-anew"
    make_topic(settings, name)
    first = topic_id(settings.bootstrap_servers, name)
    assert topic_id(settings.bootstrap_servers, name) == first
    delete_topic(settings.bootstrap_servers, name)
    make_topic(settings, name)
    assert topic_id(settings.bootstrap_servers, name) != first


def test_a_topic_is_empty_until_one_of_its_partitions_has_a_record(settings: Settings) -> None:
    name, admin = f"{settings.app_id}-empty", admin_client(settings.bootstrap_servers)
    make_topic(settings, name, partitions=3)

    def answers() -> bool:
        with contextlib.suppress(BrokerError):  # a new leader refuses to answer for a moment
            return is_empty(admin, name, 3)
        return False

    wait_until(answers, timeout=60, what=f"the leaders of {name}")
    write(settings, name, partition=1)
    assert not is_empty(admin, name, 3)
    assert written_partitions(admin, name, 3) == 2


def test_a_changelog_with_state_gets_no_partitions_after_its_topic_was_created_again_with_more(
    settings: Settings,
) -> None:
    create_topics(settings)
    commands = settings.topics.commands
    changelog = settings.topics.changelog(commands)
    write(settings, changelog, partition=2)
    delete_topic(settings.bootstrap_servers, commands)
    make_topic(settings, commands, partitions=5)
    with pytest.raises(ConfigurationError, match=f"Delete {commands}.*--partitions 3"):
        grow(settings, commands, 5)
    assert len(admin_client(settings.bootstrap_servers).list_topics(changelog).topics[changelog].partitions) == 3


async def test_a_commands_topic_is_created_again_with_all_of_its_partitions_and_every_schedule_fires(
    kafka: Kafka, tmp_path: Path
) -> None:
    """The settings say 4 partitions by default."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="6")
    del application.options["partitions"]
    commands = application.settings.topics.commands
    run = partial(run_topics, application.settings)
    try:
        worker = await application.start_worker()
        await schedule_all(application)
        await worker.end()
        await application.delete_topics(commands)

        assert "topics create --partitions 6 " in run("check", "--json").stdout
        refused = run("create", "--partitions", "5")
        assert refused.exit_code != 0
        assert "must be at least 6" in str(refused.exception)
        created = run("create")
        assert created.exit_code == 0
        assert f"{commands} has 6 partitions, as many as its changelog" in created.stderr
        assert run("check").exit_code == 0

        worker.start()
        await worker.ready()
        await each_is_found_and_fires(application)
    finally:
        application.close()


async def test_after_an_interrupted_growth_a_commands_topic_is_created_again_as_its_schedules_are_distributed(
    kafka: Kafka, tmp_path: Path
) -> None:
    """`topics grow` has added partitions to the changelog only."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="4")
    settings, commands = application.settings, application.settings.topics.commands
    run = partial(run_topics, settings)
    try:
        worker = await application.start_worker()
        await schedule_all(application)
        await worker.end()
        await asyncio.to_thread(add_partitions, settings, settings.topics.changelog(commands), 6)
        await application.delete_topics(commands)

        refused = run("create", "--commands-partitions", f"{commands}=6")
        assert f"must be 4 for {commands}" in str(refused.exception)
        created = run("create")
        assert created.exit_code == 0
        assert f"{commands} has 4 partitions: its schedules are distributed over these." in created.stderr
        assert "has 6. To use all of them, start a worker, and run `light-scheduler topics grow --partitions 6" in (
            created.stderr
        )

        worker.start()
        await worker.ready()
        await asyncio.to_thread(grow, settings, commands, 6)
        assert await asyncio.to_thread(moved, settings, commands, 6, 60.0, lambda _: None)
        await each_is_found_and_fires(application)
    finally:
        application.close()


async def test_while_schedules_move_the_partitions_of_a_lost_commands_topic_are_for_the_user_to_decide(
    kafka: Kafka, tmp_path: Path
) -> None:
    """A worker has noted the new number, and ended before the first schedule has moved."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="4")
    settings, commands = application.settings, application.settings.topics.commands
    run = partial(run_topics, settings)
    try:
        worker = await application.start_worker()
        await schedule_all(application)
        await worker.end()
        await asyncio.to_thread(grow_topic, settings, commands, 6)
        await note_partitions(settings, commands, 6)
        await application.delete_topics(commands)

        options = f"--commands-partitions {commands}=4 or --commands-partitions {commands}=6"
        for words in ((), ("--commands-partitions", f"{commands}=5")):
            refused = run("create", *words)
            assert refused.exit_code != 0
            assert "may be distributed over 4 or 6 partitions" in str(refused.exception)
            assert "schedules were moving from 4 to 6 partitions" in str(refused.exception)
            assert str(refused.exception).endswith(f"Decide with {options}")
        assert run("create", "--commands-partitions", f"{commands}=4").exit_code == 0

        worker.start()
        await worker.ready()
        await asyncio.to_thread(grow, settings, commands, 6)
        assert await asyncio.to_thread(moved, settings, commands, 6, 60.0, lambda _: None)
        await each_is_found_and_fires(application)
    finally:
        application.close()


async def test_a_commands_topic_that_was_created_again_with_fewer_partitions_grows_again(
    kafka: Kafka, tmp_path: Path
) -> None:
    """Its partitions have state that says that they handed everything over, in the growth of the lost topic."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="4")
    settings, commands = application.settings, application.settings.topics.commands
    try:
        worker = await application.start_worker()
        await asyncio.to_thread(grow, settings, commands, 6)
        assert await asyncio.to_thread(moved, settings, commands, 6, 60.0, lambda _: None)
        await application.delete_topics(commands)
        await worker.shows(lambda info: not info["lanes"])
        await asyncio.to_thread(make_topic, settings, commands, 4)
        await worker.shows(lambda info: sum(lane["state"] == "running" for lane in info["lanes"]) == 4)
        await schedule_all(application)

        await asyncio.to_thread(grow, settings, commands, 6)
        assert await asyncio.to_thread(moved, settings, commands, 6, 60.0, lambda _: None)
        await each_is_found_and_fires(application)
    finally:
        application.close()


@pytest.mark.parametrize("value", ["orders", "=4", "orders=", "orders=0", "orders=four", "orders=-1"])
def test_a_decision_that_cannot_be_read_is_refused(settings: Settings, value: str) -> None:
    refused = run_topics(settings, "create", "--commands-partitions", value)
    assert refused.exit_code == 2
    assert "is not a topic and its number of partitions" in refused.stderr


def test_a_decision_for_a_topic_that_is_not_lost_is_refused(settings: Settings) -> None:
    create_topics(settings)
    commands = settings.topics.commands
    refused = run_topics(settings, "create", "--commands-partitions", f"{commands}=5")
    assert f"names {commands}, which is no missing commands topic" in str(refused.exception)


async def test_a_worker_warns_of_state_that_a_smaller_commands_topic_leaves_behind(
    kafka: Kafka, tmp_path: Path
) -> None:
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="3")
    settings = application.settings
    commands = settings.topics.commands
    try:
        worker = await application.start_worker()
        await asyncio.to_thread(delete_topic, settings.bootstrap_servers, commands)
        await asyncio.to_thread(make_topic, settings, commands, 2)
        warning = f"{settings.topics.changelog(commands)} has 3 partitions, more than {commands} with 2."

        async def is_logged() -> bool:
            return warning in worker.log.read_text(errors="replace")

        await eventually(is_logged, within=60, every=0.1, what="the warning of a worker that runs")
        await worker.end()
        worker.log.write_text("")
        worker.start()
        await worker.ready()
        assert await is_logged()
        checks = await asyncio.to_thread(lambda: list(check_application_topics(settings)))
        [check] = [check for check in checks if "more than" in check.detail]
        assert (check.status, "topics grow --partitions 3" in (check.fix or "")) == ("fail", True)
    finally:
        application.close()


def test_an_unknown_topic_is_an_error_that_names_it(settings: Settings) -> None:
    with pytest.raises(BrokerError, match="no-such-topic"):
        topic_id(settings.bootstrap_servers, "no-such-topic")
    with pytest.raises(BrokerError, match="no-such-topic"):
        topic_configuration(settings.bootstrap_servers, "no-such-topic")


def test_a_broker_that_is_not_there_is_an_error_in_bounded_time() -> None:
    nowhere = load_settings({"broker": "127.0.0.1:1"}, environment={})
    for call in (create_topics, check_topics):
        with pytest.raises(BrokerUnreachable, match=r"cannot reach Kafka at 127\.0\.0\.1:1"):
            call(nowhere, timeout=0.5)


def test_the_command_checks_creates_and_checks_again(settings: Settings) -> None:
    def run(*words: str) -> Result:
        options = ("--app-id", settings.app_id, "--broker", settings.broker)
        return CliRunner().invoke(cli, ["topics", *words, *options], env={"LIGHT_SCHEDULER_PARTITIONS": "2"})

    missing = run("check", "--json")
    assert missing.exit_code == 1
    assert {finding["kind"] for finding in json.loads(missing.stdout)["findings"]} == {"missing"}
    assert "topics create" in run("check").stdout
    created = run("create", "--json")
    assert created.exit_code == 0
    assert len(json.loads(created.stdout)["created"]) == len(topic_plan(settings))
    assert run("check").exit_code == 0
    assert json.loads(run("check", "--json").stdout) == {"ok": True, "findings": []}


def test_advice_is_told_with_what_to_do_and_is_no_failure(settings: Settings) -> None:
    """The changelog of an application whose topics were made before `topics create` set how late it is compacted."""
    create_topics(settings)
    changelog = settings.topics.changelog(settings.topics.commands)
    configure(settings.bootstrap_servers, changelog, {"min.compaction.lag.ms": "0"})
    assert check_topics(settings) != []
    options = ("topics", "check", "--app-id", settings.app_id, "--broker", settings.broker)
    said = CliRunner().invoke(cli, options)
    assert said.exit_code == 0
    fix = f"kafka-configs.sh --bootstrap-server {settings.bootstrap_servers} --alter --topic {changelog} --add-config "
    assert f"{fix}min.compaction.lag.ms=60000" in said.stdout
    document = json.loads(CliRunner().invoke(cli, [*options, "--json"]).stdout)
    assert (document["ok"], [each["status"] for each in document["findings"]]) == (True, ["warn"])
    assert [(check.status, check.fix) for check in check_application_topics(settings)] == [
        ("warn", f"{fix}min.compaction.lag.ms=60000")
    ]
    name, _, value = document["findings"][0]["fix"].rpartition(" ")[2].partition("=")
    configure(settings.bootstrap_servers, changelog, {name: value})
    assert check_topics(settings) == []


def run_topics(settings: Settings, *words: str) -> Result:
    options = ("--app-id", settings.app_id, "--broker", settings.broker)
    return CliRunner().invoke(cli, ["topics", *words, *options])


async def schedule_all(application: Application) -> None:
    async with application.client() as client:
        for id in IDS:
            await client.schedule(id, topic=application.target, at=YEAR_2100)


async def each_is_found_and_fires(application: Application) -> None:
    async with application.client() as client:
        for id in IDS:
            assert (await client.trigger(id)).outcome is Outcome.TRIGGERED
    records = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= len(IDS), 60
    )
    assert sorted(str(header(record, "schedule-id")) for record in records) == sorted(IDS)


def add_partitions(settings: Settings, topic: str, partitions: int) -> None:
    admin = admin_client(settings.bootstrap_servers)
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)
    wait_until(
        lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == partitions,
        timeout=60,
        what=f"{partitions} partitions of {topic}",
    )


async def note_partitions(settings: Settings, topic: str, partitions: int) -> None:
    """Record that a commands topic has grown, as the first lane that sees it does."""
    incarnation = TopicIncarnation(topic, await asyncio.to_thread(topic_id, settings.bootstrap_servers, topic))
    tenants = CompactedTopic(settings.connection, settings.topics.tenants)
    async with followed(tenants.follow, settings.topics.tenants, 30):
        await tenants.write(partitions_key(incarnation, partitions), VALUE)
    noted = await asyncio.to_thread(partitioning_of, settings, topic)
    assert noted is not None
    assert (noted.partitions, noted.is_settled) == (partitions, False)


def make_topic(settings: Settings, name: str, partitions: int = 1) -> None:
    admin = admin_client(settings.bootstrap_servers)
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(60)
    wait_until(lambda: name in admin.list_topics(timeout=10).topics, timeout=60, what=f"topic {name}")


def write(settings: Settings, topic: str, partition: int) -> None:
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers})
    producer.produce(topic, b"value", b"key", partition=partition)
    assert producer.flush(60) == 0
