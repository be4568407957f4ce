"""A worker that cannot start yet, or at all, says so in plain words: `faust -A light_scheduler worker`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from light_scheduler.agents import startup
from light_scheduler.agents.startup import (
    REMIND_S,
    Waiting,
    refuse_short_changelogs,
    wait_for_access,
    wait_for_topics,
    warn_of_idle_state,
)
from light_scheduler.clock import SystemClock
from light_scheduler.errors import BrokerError, BrokerRefused, ConfigurationError
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_facts import TargetTopic, refused
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings

WORKER = [sys.executable, "-m", "faust", "-A", "light_scheduler", "worker"]


def start(folder: Path, command: Sequence[str] = WORKER, **settings: str) -> subprocess.Popen[str]:
    """Start a worker whose broker is not there."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    given = {"broker": f"127.0.0.1:{free_port()}", "web_port": str(free_port()), "data_dir": str(folder), **settings}
    environment |= {ENVIRONMENT_PREFIX + name.upper(): value for name, value in given.items()}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_what_is_waited_for_is_told_once_then_when_it_changes_and_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    waiting = Waiting(lambda: now)
    with caplog.at_level(logging.INFO):
        for what in ("broker", "broker", "topics", "topics"):
            waiting.report(what)
            now += 1
        now = 2 + REMIND_S
        waiting.report("topics")
        waiting.end()
    assert caplog.messages == [
        "waiting: broker",
        "waiting: topics",
        "waiting: topics",
        "the broker and the topics are available",
    ]


@pytest.mark.parametrize(
    "end", [None, BrokerRefused("kafka-1:9092", "a wrong password"), ConfigurationError("web_host", "")]
)
async def test_a_worker_waits_until_kafka_says_whether_there_are_tokens(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, end: Exception | None
) -> None:
    answers: list[Exception | None] = [BrokerError("reading tenants: no leader"), BrokerError("no leader"), end]
    slept: list[float] = []

    async def refuse(*_: object) -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(startup, "refuse_open_door", refuse)
    waiting = wait_for_access(Settings(), "node-1", SystemClock(), lambda: False, sleep)
    if end is None:
        await waiting
    else:
        with pytest.raises(type(end)):
            await waiting
    assert len(slept) == 2
    assert "waiting: cannot read from Kafka whether there are tokens: reading tenants: no leader" in caplog.messages


@pytest.mark.parametrize(
    ("dialect", "advice"),
    [
        (
            "json",
            "light-scheduler topics grow --partitions 6 --commands-topic later --app-id app "
            "--broker kafka://kafka-1:9092 --commands-topics app-commands:native,later:json",
        ),
        (
            "karafka",
            "kafka-topics.sh --bootstrap-server kafka-1:9092 --alter --topic app-later-schedules-changelog-3 "
            "--partitions 6",
        ),
    ],
)
def test_a_changelog_with_too_few_partitions_is_refused_with_the_command_that_mends_it(
    dialect: str, advice: str
) -> None:
    given = {"app_id": "app", "broker": "kafka-1:9092", "commands_topics": f"app-commands,later:{dialect}"}
    settings = load_settings(given, environment={})
    partitions = dict.fromkeys(("app-commands", "app-schedules-changelog", "app-later-schedules-changelog-3"), 4)
    refuse_short_changelogs(settings, partitions | {"later": 3})
    with pytest.raises(ConfigurationError) as error:
        refuse_short_changelogs(settings, partitions | {"later": 6})
    assert error.value.reason.endswith(f"run `{advice}`")


class Topics(dict[str, TargetTopic]):
    """What a broker tells of topics."""

    async def resolve(self, names: set[str]) -> None:
        for name in names:
            self.setdefault(name, TargetTopic(4, 1_000_000, None, 0))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("missing", "denied", "advice"),
    [
        (True, False, "; run `light-scheduler topics create --app-id app --broker kafka://kafka-1:9092`"),
        (False, True, "; `light-scheduler doctor` prints the command that grants each missing right"),
        (
            True,
            True,
            "; run `light-scheduler topics create --app-id app --broker kafka://kafka-1:9092`; "
            "`light-scheduler doctor` prints the command that grants each missing right",
        ),
    ],
)
async def test_who_waits_for_topics_is_told_to_create_what_is_missing_and_to_grant_what_is_denied(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, missing: bool, denied: bool, advice: str
) -> None:
    settings = load_settings({"app_id": "app", "broker": "kafka-1:9092"}, environment={})
    topics = Topics()
    if missing:
        topics["app-tenants"] = refused("topic app-tenants does not exist", 0)
    if denied:
        topics["app-history"] = refused("not authorised to write to app-history", 0, is_denied=True)
    rounds = iter([False, True])

    async def no_fault(_: object) -> None:
        """The broker answers."""

    monkeypatch.setattr(startup, "Targets", lambda _: topics)
    monkeypatch.setattr(startup, "fault_of", no_fault)
    await wait_for_topics(settings, lambda: next(rounds), lambda _: asyncio.sleep(0))
    [said] = caplog.messages
    assert said.endswith(advice)
    assert said.count(";") == advice.count(";")


def test_state_that_no_lane_has_is_logged_with_the_command_that_mends_it(caplog: pytest.LogCaptureFixture) -> None:
    settings = load_settings({"app_id": "app", "broker": "kafka-1:9092"}, environment={})
    warn_of_idle_state(settings, "app-commands", {"app-commands": 12, "app-schedules-changelog": 12})
    assert caplog.messages == []
    warn_of_idle_state(settings, "app-commands", {"app-commands": 4, "app-schedules-changelog": 12})
    assert caplog.messages == [
        "app-schedules-changelog has 12 partitions, more than app-commands with 4. Schedules in its partitions 4 and "
        "up do not fire: run `light-scheduler topics grow --partitions 12 --commands-topic app-commands --app-id app "
        "--broker kafka://kafka-1:9092`"
    ]


def test_without_a_broker_a_worker_writes_nothing_but_json_lines_until_it_is_stopped(tmp_path: Path) -> None:
    worker = start(tmp_path, log_format="json")
    assert worker.stderr is not None
    lines = []
    for line in worker.stderr:
        lines.append(line)
        if "waiting" in line:
            break
    worker.send_signal(signal.SIGINT)
    output, rest = worker.communicate(timeout=30)

    logged = [json.loads(line) for line in (*lines, *rest.splitlines())]
    assert output == ""
    assert [(line["level"], line["logger"]) for line in logged] == [
        ("INFO", "light_scheduler.agents.app"),
        ("WARNING", "light_scheduler.agents.startup"),
    ]
    assert logged[1]["message"].startswith("waiting: cannot reach Kafka at 127.0.0.1:")
    assert all(line["at"].endswith("Z") for line in logged)


def test_options_of_the_worker_command_are_not_taken_for_those_of_faust(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from light_scheduler.cli import main; main()", "worker"]
    worker = start(tmp_path, command=[*command, "--app-id", "orders", "--web-port", str(free_port())])
    assert worker.stderr is not None
    lines = []
    for line in worker.stderr:
        lines.append(line)
        if "waiting" in line:
            break
    worker.send_signal(signal.SIGINT)
    worker.communicate(timeout=30)
    assert "application orders, Kafka at" in lines[0]
    assert "waiting: cannot reach Kafka" in lines[-1]


def test_a_port_in_use_is_one_line_of_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = start(tmp_path, web_port=str(port))
        output, errors = worker.communicate(timeout=60)
    assert (worker.returncode, output) == (1, "")
    assert "Traceback" not in errors
    (error,) = (line for line in errors.splitlines() if "[ERROR]" in line or "[CRITICAL]" in line)
    assert f"port {port} of 127.0.0.1 is in use" in error
    assert "--web-port" in error


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"tick": "5"}, "setting LIGHT_SCHEDULER_TICK: '5' has no unit"),
        ({"tock": "5s"}, "setting LIGHT_SCHEDULER_TOCK: is not a setting; did you mean tick?"),
        ({"data_dir": "/dev/null/state"}, "setting data_dir: /dev/null/state cannot be created: Not a directory"),
        ({"commands_topics": "a:nonsense"}, "nonsense"),
    ],
)
def test_a_bad_setting_is_one_line_of_error_and_wrong_use(tmp_path: Path, settings: dict[str, str], error: str) -> None:
    worker = start(tmp_path, **settings)
    output, errors = worker.communicate(timeout=60)
    assert (worker.returncode, output) == (2, "")
    assert len(errors.splitlines()) == 1
    assert error in errors
