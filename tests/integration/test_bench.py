"""`light-scheduler bench` measures a real worker on a real broker, and counts what went wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.soak]

MESSAGES = 2_000
SEEN_AT_WORK = 40_000
"""Commands that keep a worker busy for longer than it takes to look at it twice, also on a slow machine."""
RESTARTS = {"restart_to_first_firing_s", "restart_after_kill_to_first_firing_s"}
UPDATES = {
    f"{kind}_{figure}" for kind in ("accepted", "replaced") for figure in ("per_s", "ratio_to_few", "cpu_ratio_to_few")
}
FAULTS = {"missing", "duplicate", "early"}
SPEED = {"ceiling_per_s", "ratio_to_ceiling", "worker_cpu_us_per_event"}


def measured(scenario: str, *options: str) -> dict[str, Any]:
    """Run a small measurement as a user does; return its document."""
    ran = subprocess.run(
        [
            *(sys.executable, "-c", "from light_scheduler.cli import main; main()", "bench", scenario),
            *(*options, "--repeat", "1", "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    assert set(document) == {"scenario", "settings", "machine", "versions", "figures"}
    assert document["scenario"] == scenario
    return document


def medians(document: dict[str, Any]) -> dict[str, float]:
    for figure in document["figures"].values():
        assert set(figure) == {"median", "min", "max", "unit"}
        assert figure["min"] <= figure["median"] <= figure["max"]
    return {name: figure["median"] for name, figure in document["figures"].items()}


@pytest.mark.parametrize(
    ("scenario", "messages", "rate", "own"),
    [
        ("ingest", SEEN_AT_WORK, "accepted_per_s", set[str]()),
        pytest.param(
            *("burst", MESSAGES, "firings_per_s", {"lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms"}),
            marks=pytest.mark.every_case,
        ),
    ],
)
def test_a_scenario_reports_its_rate_beside_the_ceiling_and_no_faults(
    scenario: str, messages: int, rate: str, own: set[str]
) -> None:
    figures = medians(measured(scenario, "--messages", str(messages)))
    speed = SPEED if sys.platform == "linux" else SPEED - {"worker_cpu_us_per_event"}
    assert set(figures) == {rate} | speed | own | FAULTS
    assert all(figures[name] > 0 for name in {rate} | speed)
    assert figures["ratio_to_ceiling"] == pytest.approx(figures[rate] / figures["ceiling_per_s"])
    assert {figures[name] for name in FAULTS} == {0}


@pytest.mark.parametrize("dialect", ["skyuk", "light4j"])
@pytest.mark.every_case
def test_commands_that_a_schema_registry_frames_are_all_accepted(dialect: str) -> None:
    document = measured("ingest", "--messages", str(SEEN_AT_WORK), "--dialect", dialect, "--framed")
    assert (document["settings"]["dialect"], document["settings"]["framed"]) == (dialect, True)
    figures = medians(document)
    assert {figures[name] for name in FAULTS} == {0}


@pytest.mark.every_case
def test_the_lateness_of_a_steady_tenant_is_reported_while_another_has_a_crowd_due() -> None:
    document = measured("fair", "--messages", "2000", "--rate", "50", "--seconds", "10")
    assert {name: document["settings"][name] for name in ("messages", "rate", "seconds")} == {
        "messages": 2_000,
        "rate": 50,
        "seconds": 10,
    }
    figures = medians(document)
    assert set(figures) >= {"firings_per_s", "lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms"} | FAULTS
    assert {figures[name] for name in FAULTS} == {0}
    assert 0 <= figures["lateness_p50_ms"] <= figures["lateness_p99_ms"] <= figures["lateness_max_ms"] < 5_000


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        pytest.param("SSL", None, marks=pytest.mark.every_case),
        pytest.param("SASL_PLAINTEXT", "PLAIN", marks=pytest.mark.every_case),
        pytest.param("SASL_PLAINTEXT", "SCRAM-SHA-256", marks=pytest.mark.every_case),
        pytest.param("SASL_SSL", "SCRAM-SHA-512", marks=pytest.mark.every_case),
        pytest.param("SASL_SSL", "OAUTHBEARER", marks=pytest.mark.every_case),
    ],
)
def test_a_worker_is_measured_with_a_secured_connection(protocol: str, mechanism: str | None) -> None:
    login = () if mechanism is None else ("--sasl-mechanism", mechanism)
    document = measured("burst", "--messages", str(MESSAGES), "--security-protocol", protocol, *login)
    settings = document["settings"]
    assert (settings["security_protocol"], settings.get("sasl_mechanism")) == (protocol, mechanism)
    figures = medians(document)
    assert figures["firings_per_s"] > 0
    assert {figures[name] for name in FAULTS} == {0}


@pytest.mark.every_case
def test_a_steady_rate_reports_the_lateness_that_a_consumer_sees_and_no_faults() -> None:
    document = measured("steady", "--rate", "500", "--seconds", "4", "--security-protocol", "SASL_SSL")
    settings = document["settings"]
    assert (settings["rate"], settings["security_protocol"]) == (500, "SASL_SSL")
    figures = medians(document)
    assert set(figures) >= {"lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms"} | FAULTS
    assert {figures[name] for name in FAULTS} == {0}
    assert 0 <= figures["lateness_p50_ms"] <= figures["lateness_p99_ms"] <= figures["lateness_max_ms"]


@pytest.mark.parametrize(
    ("scenario", "own"),
    [
        pytest.param(
            "recovery", {*RESTARTS, "recovered_per_s", "failover_s", "rss_bytes"}, marks=pytest.mark.every_case
        ),
        pytest.param("memory", {"idle_cpu_percent", "rss_bytes", "disk_bytes"}, marks=pytest.mark.every_case),
        pytest.param(
            *("scan-cost", {"firings_per_s", "ceiling_per_s", "ratio_to_ceiling"}), marks=pytest.mark.every_case
        ),
        pytest.param("update-cost", UPDATES | {"rss_bytes", "disk_bytes"}, marks=pytest.mark.every_case),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell what a process takes")
def test_a_scenario_with_many_pending_reports_what_they_cost(scenario: str, own: set[str]) -> None:
    messages = {"scan-cost": MESSAGES, "update-cost": SEEN_AT_WORK}
    some = ["--messages", str(messages[scenario])] if scenario in messages else []
    document = measured(scenario, "--pending", "2000", *some)
    assert document["settings"]["pending"] == 2_000
    figures = medians(document)
    assert set(figures) >= own | {"missing", "early"}
    assert all(figures[name] > 0 for name in own)
    assert (figures["missing"], figures["early"]) == (0, 0)
