"""The doctor finds what stands in a worker's way, and says what to do."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from light_scheduler.cli import cli
from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.devkit.waiting import wait_until
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.missing_rights import missing_rights
from light_scheduler.kafka.topic_admin import admin_client, create_topics, partition_counts
from light_scheduler.model import DelayRule
from light_scheduler.model.tenant_rules import TenantRules
from light_scheduler.settings import load_settings
from light_scheduler.testing import Kafka
from light_scheduler.wire.delays import encode_rule
from light_scheduler.wire.tenants import StoredRules, rules_record

pytestmark = pytest.mark.integration


class Doctor:
    """Runs `light-scheduler doctor --json` for an application of its own."""

    def __init__(self, broker: str, data_dir: Path) -> None:
        self.options = {
            "app-id": f"doctor-{uuid.uuid4().hex[:8]}",
            "broker": broker,
            "data-dir": str(data_dir),
            "web-port": str(free_port()),
        }

    def words(self) -> list[str]:
        return [word for name, value in self.options.items() for word in (f"--{name}", value)]

    def examine(self) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        """Return the exit code and the checks by name."""
        result = CliRunner().invoke(cli, ["doctor", "--json", *self.words()])
        assert result.stdout, result.output
        report = json.loads(result.stdout)
        assert report["ok"] == (result.exit_code == 0)
        checks: dict[str, list[dict[str, Any]]] = {}
        for check in report["checks"]:
            checks.setdefault(check["name"], []).append(check)
        return result.exit_code, checks


@pytest.fixture
def doctor(kafka: Kafka, tmp_path: Path) -> Doctor:
    return Doctor(kafka.bootstrap_servers, tmp_path / "state")


def test_all_is_well_when_the_topics_are_there(doctor: Doctor) -> None:
    create_topics(load_settings({"app_id": doctor.options["app-id"], "broker": doctor.options["broker"]}))
    exit_code, checks = doctor.examine()
    assert exit_code == 0
    for name in ("python", "java", "data folder", "web port", "broker", "time-outs", "topics", "rights"):
        assert [check["status"] for check in checks[name]] == ["ok"], checks[name]
    assert [check["status"] for name in ("access", "tokens") for check in checks[name]] == ["ok", "ok"]
    table = CliRunner().invoke(cli, ["doctor", *doctor.words()])
    assert table.exit_code == 0
    assert f"topics of {doctor.options['app-id']}: no problem found" in table.stdout


def test_missing_topics_fail_with_the_command_that_makes_them_and_none_is_made(doctor: Doctor) -> None:
    exit_code, checks = doctor.examine()
    assert exit_code == 1
    assert {check["status"] for check in checks["topics"]} == {"fail"}
    assert all("topics create" in check["fix"] for check in checks["topics"])
    broker = doctor.options["broker"]
    there = partition_counts(admin_client(broker), broker, 10)
    assert not any(name.startswith(doctor.options["app-id"]) for name in there)


@pytest.mark.soak
def test_a_right_that_is_missing_is_named_and_a_cluster_without_any_group_is_no_failure(tmp_path: Path) -> None:
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with EmbeddedBroker(properties=properties) as broker:
        doctor = Doctor(broker.bootstrap_servers, tmp_path)
        settings = load_settings({"app_id": doctor.options["app-id"], "broker": doctor.options["broker"]})
        create_topics(settings)
        admin = admin_client(broker.bootstrap_servers)
        others = [NewTopic(name, 1) for name in ("in", "out", "bills")]
        for future in admin.create_topics(others).values():
            future.result(30)
        names = settings.topics
        slow = DelayRule("slow", "in", 5_000, "out")
        stored = {
            names.delays: encode_rule(slow),
            names.tenants: rules_record("shop", StoredRules(TenantRules(default_target="bills"), 0, "ops")),
        }
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for topic, (key, value) in stored.items():
            producer.produce(topic, value, key, partition=0)
        assert producer.flush(30) == 0
        assert doctor.examine()[1]["rights"][0]["status"] == "ok"
        rules = [
            AclBinding(
                *(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*"),
                *(operation, AclPermissionType.ALLOW),
            )
            for topic in (names.commands, "out", "bills")
            for operation in (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
        ]
        rules.append(
            AclBinding(
                *(ResourceType.TRANSACTIONAL_ID, f"{names.delays}/", ResourcePatternType.PREFIXED, "User:other", "*"),
                *(AclOperation.WRITE, AclPermissionType.ALLOW),
            )
        )
        for future in admin.create_acls(rules).values():
            future.result(30)
        wait_until(
            lambda: len(missing_rights(settings, [slow], ["bills"])) == 4, timeout=60, what="the rules to be in force"
        )
        exit_code, checks = doctor.examine()
    assert exit_code == 1
    assert {check["detail"] for check in checks["rights"]} == {
        *(f"no right WRITE on topic {topic}" for topic in (names.commands, "out", "bills")),
        f"no right WRITE on transactional ids {names.delays}/...: delay rules need them",
    }


def test_a_broker_that_is_not_there_fails(doctor: Doctor) -> None:
    doctor.options["broker"] = f"127.0.0.1:{free_port()}"
    exit_code, checks = doctor.examine()
    assert exit_code == 1
    assert checks["broker"][0]["status"] == "fail"
    assert "light-scheduler broker" in checks["broker"][0]["fix"]
    assert "topics" not in checks


def test_time_outs_beyond_the_brokers_limits_fail(doctor: Doctor) -> None:
    doctor.options |= {"session-timeout": "2h", "transaction-timeout": "1h"}
    exit_code, checks = doctor.examine()
    assert exit_code == 1
    assert [check["status"] for check in checks["time-outs"]] == ["fail", "fail"]


def test_a_data_folder_that_cannot_be_made_fails(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    doctor.options["data-dir"] = str(tmp_path / "file" / "state")
    exit_code, checks = doctor.examine()
    assert exit_code == 1
    assert checks["data folder"][0]["status"] == "fail"


def test_a_web_port_that_something_else_has_fails(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        doctor.options["web-port"] = str(other.getsockname()[1])

        def hang_up() -> None:
            connection, _ = other.accept()
            connection.close()

        closer = threading.Thread(target=hang_up)
        closer.start()
        exit_code, checks = doctor.examine()
        closer.join()
    assert exit_code == 1
    assert checks["web port"][0]["status"] == "fail"


def test_a_web_port_that_a_worker_has_is_fine(doctor: Doctor, live_port: int) -> None:
    doctor.options["web-port"] = str(live_port)
    _, checks = doctor.examine()
    assert checks["web port"][0]["status"] == "ok"
    assert "a worker answers" in checks["web port"][0]["detail"]


@pytest.fixture
def live_port() -> Iterator[int]:
    """A server that answers /live as workers do."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/live" else 404)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()
