"""What each process of a node is given of the node's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from light_scheduler.errors import ConfigurationError
from light_scheduler.node.job import Job, decoded, encoded
from light_scheduler.processes import Process, count_of, settings_of_each, unused_folders
from light_scheduler.settings import Settings, load_settings


def node(**options: Any) -> Settings:
    return load_settings({name: str(value) for name, value in options.items()}, environment={})


def test_a_node_has_as_many_processes_as_are_asked_for_or_one_for_each_core() -> None:
    assert [count_of(node(**options), 6) for options in ({}, {"processes": 3}, {"processes": "auto"})] == [1, 3, 6]


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "all", ""])
def test_another_number_is_refused_by_name(value: str) -> None:
    with pytest.raises(ConfigurationError, match="--processes"):
        node(processes=value)


def test_each_process_has_a_folder_a_port_and_a_name_of_its_own() -> None:
    each = settings_of_each(node(processes=3, data_dir="/state", web_port=7000, instance_id="node-a"), 3)
    assert [own.data_dir for own in each] == [Path("/state"), Path("/state/1"), Path("/state/2")]
    assert [own.web_port for own in each] == [7001, 7002, 7003]
    assert [own.instance_id for own in each] == ["node-a-0", "node-a-1", "node-a-2"]
    assert [own.processes for own in each] == [1, 1, 1]


def test_each_process_knows_which_settings_are_its_own_and_where_the_others_come_from() -> None:
    for own in settings_of_each(node(processes=2, web_port=7000, app_id="shop"), 2):
        assert [own.origin(name) for name in ("data_dir", "web_port", "processes", "app_id", "tick")] == [
            *("node", "node", "node", "option", "default")
        ]


@pytest.mark.parametrize("count", [1, 2, 6])
def test_the_first_process_has_the_folder_of_a_worker_that_is_alone_however_many_there_are(count: int) -> None:
    alone = node(data_dir="/state")
    assert settings_of_each(alone, count)[0].data_dir == alone.data_dir


@pytest.mark.parametrize(
    ("process", "unused"),
    [
        (None, ["0", "1", "2", "10"]),
        (Process(0, ("http://a:1", "http://a:2")), ["0", "2", "10"]),
        (Process(0, tuple("abc")), ["0", "10"]),
        (Process(1, ("http://a:1", "http://a:2")), []),
    ],
    ids=["alone", "two", "three", "second"],
)
def test_the_folders_of_processes_that_there_are_no_more_are_found_and_no_others(
    process: Process | None, unused: list[str], tmp_path: Path
) -> None:
    for name in ("0/app", "1/app", "2/app", "10/app", "7/other", "8", "app/t-0", "faust", "worker-2/app"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "9").touch()
    found = unused_folders(node(data_dir=tmp_path, app_id="app"), process)
    assert {each.name for each in found} == set(unused)


@pytest.mark.parametrize(
    ("host", "name"), [("node-1", "node-1-6066-0"), ("10.0.0.7", "10.0.0.7-6066-0"), ("fd00::7", "fd00--7-6066-0")]
)
def test_a_node_without_a_name_is_called_after_its_address_which_no_other_has(host: str, name: str) -> None:
    first = settings_of_each(node(web_host=host), 2)[0]
    assert first.instance_id == name
    assert node(instance_id=name).instance_id == name, "Kafka takes it as a name"


@pytest.mark.parametrize(
    ("rebuilds", "count", "share"), [(2, 2, 1), (8, 3, 2), (2, 16, 1), (0, 4, 0)], ids=["even", "down", "least", "none"]
)
def test_processes_share_the_rebuilds_of_a_node(rebuilds: int, count: int, share: int) -> None:
    each = settings_of_each(node(rebuild_processes=rebuilds), count)
    assert {own.rebuild_processes for own in each} == {share}


def test_a_port_without_room_after_it_is_refused() -> None:
    settings_of_each(node(web_port=65_533), 2)
    with pytest.raises(ConfigurationError, match=r"web_port: 3 processes need the ports from 65533 to 65536"):
        settings_of_each(node(web_port=65_533), 3)


def test_a_name_without_room_for_a_number_is_refused() -> None:
    settings_of_each(node(instance_id="n" * 247), 10)
    with pytest.raises(ConfigurationError, match="instance_id: must leave room"):
        settings_of_each(node(instance_id="n" * 247), 11)


def test_a_process_is_given_every_setting_and_its_secrets_as_they_are() -> None:
    settings = load_settings(
        {
            "delays": "a=x:1m:y",
            "tenant_weights": "acme:3",
            "tenant_firing_rates": "*:5,acme:unlimited",
            "commands_topics": "t:json",
            "web_allowed_hosts": "a,b",
            "lookback_minutes": "all",
        },
        environment={
            "LIGHT_SCHEDULER_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "LIGHT_SCHEDULER_SASL_MECHANISM": "PLAIN",
            "LIGHT_SCHEDULER_SASL_USERNAME": "u",
            "LIGHT_SCHEDULER_SASL_PASSWORD": "pa$$ word",
        },
    )
    job = Job(settings_of_each(settings, 2)[1], Process(1, ("http://a:1", "http://a:2"), 4), [5, 6])
    line = encoded(job)
    assert line.index(b"\n") == len(line) - 1
    assert decoded(line) == job
    password = decoded(line).settings.sasl_password
    assert password is not None
    assert password.reveal() == "pa$$ word"
