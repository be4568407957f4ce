"""A job with a secret in its settings, in a Spark of its own: nothing that it writes or shows has the secret in it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support import spark_kafka
from support.acls import grant
from support.jobs import quick_environment
from support.least_rights import pipeline_rights
from support.ledger import Ledger
from support.planted import OF_KAFKA, found_in
from support.secured import SecuredKafka, secured_kafka
from support.written import command_lines, files_of

from light_scheduler.host.ports import free_port
from light_scheduler.pipeline.kafka import FORMAT
from light_scheduler.pipeline.topics import OFFICIAL_FORMAT
from light_scheduler.settings import ENVIRONMENT_PREFIX, load_settings

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(600)]

KIND = "SCRAM-SHA-512"
M, HOUR = 1_793_491_200_000, 3_600_000
LOOK_S = 0.5
PAGES = ("environment/", "executors/", "jobs/", "stages/", "SQL/", "api/v1/applications")
OF_APPLICATION = ("environment", "sql?details=true&planDescription=true", "allexecutors")
"""What Spark's own pages tell of an application."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured")) as kafka:
        yield kafka


@pytest.fixture
def ledger(secured: SecuredKafka, prefix: str) -> Ledger:
    ledger = Ledger(prefix)
    for number in range(20):
        ledger.send(f"s-{number}", M, ("at", M + HOUR + number))
    ledger.run(M)
    ledger.run_until(M + 2 * HOUR)
    ledger.produce(secured.servers)
    return ledger


class Watched:
    """A job, and what it shows while it runs, by where it was seen."""

    def __init__(self, words: list[str], options: dict[str, str], folder: Path) -> None:
        self.parts: dict[str, bytes] = {}
        self._ui = f"http://127.0.0.1:{free_port()}/"
        self._folder = folder
        (folder / "events").mkdir()
        confs = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.ui.enabled": "true",
            "spark.ui.port": self._ui.rpartition(":")[2].strip("/"),
            "spark.log.level": "INFO",
        }
        for name, value in confs.items():
            words += ["--spark-conf", f"{name}={value}"]
        own = {name: value for name, value in quick_environment().items() if not name.startswith(ENVIRONMENT_PREFIX)}
        self._environment = own | {ENVIRONMENT_PREFIX + name.upper(): value for name, value in options.items()}
        self._command = [sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", *words]

    def run(self) -> int:
        """Run it to its end, looking at its pages and its command lines all the time."""
        with (self._folder / "output").open("wb") as output:
            process = subprocess.Popen(
                self._command, env=self._environment, cwd=self._folder, stdout=output, stderr=output
            )
            try:
                while not self._has_ended(process):
                    self._look()
            finally:
                process.kill()
        self.parts |= files_of(self._folder)
        return process.returncode

    def _has_ended(self, process: subprocess.Popen[bytes]) -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
        return process.returncode is not None

    def _look(self) -> None:
        self._add("ps", command_lines())
        for page in PAGES:
            self._add(page, self._page(page))
        with suppress(ValueError):
            for each in json.loads(self._page("api/v1/applications")):
                for page in OF_APPLICATION:
                    self._add(page, self._page(f"api/v1/applications/{each['id']}/{page}"))

    def _page(self, path: str) -> bytes:
        with suppress(OSError), urllib.request.urlopen(self._ui + path, timeout=10) as response:
            return bytes(response.read())
        return b""

    def _add(self, place: str, content: bytes) -> None:
        self.parts[place] = self.parts.get(place, b"") + content


@pytest.mark.soak
@pytest.mark.parametrize("format", [FORMAT, OFFICIAL_FORMAT])
def test_no_secret_is_in_anything_that_an_audit_writes_or_shows(
    secured: SecuredKafka, ledger: Ledger, tmp_path: Path, format: str
) -> None:
    options = {**secured.settings(KIND), "app_id": ledger.names.app_id, "partitions": str(ledger.partitions)}
    given = {ENVIRONMENT_PREFIX + name.upper(): value for name, value in options.items()}
    settings = load_settings({}, environment=given)
    grant(secured.servers, secured.principal(KIND), pipeline_rights(settings, [ledger.target], "light-scheduler-load"))
    if format == OFFICIAL_FORMAT and not spark_kafka.jars():
        pytest.skip("`make sparkkafka` gets Spark's own Kafka connector, where there is Maven Central")
    reading = ["--kafka-format", format, *(word for jar in spark_kafka.jars() for word in ("--jar", str(jar)))]
    places = ("--report", f"{tmp_path}/audit.html", "--faults", f"{tmp_path}/faults")
    metrics = ("--metrics-file", f"{tmp_path}/metrics.prom", "--json", "--master", "local[2]", "--memory", "1g")
    watched = Watched(["audit", *places, *reading, *metrics], options, tmp_path)
    assert watched.run() == 0, (tmp_path / "output").read_text()[-4_000:]

    parts = watched.parts
    parts["events"] = b"".join(written for place, written in parts.items() if "/events/" in place)
    signs = {
        "ps": f"{tmp_path}/audit.html",
        "environment/": "spark.eventLog.dir",
        "events": "SparkListenerSQLExecutionStart",
    }
    for place, sign in signs.items():
        assert found_in(parts[place], {"sign": sign}), f"what is there is found in {place}"
    assert {place: found for place, written in parts.items() if (found := found_in(written, OF_KAFKA))} == {}
