"""Each job on a Kafka with ACLs, with exactly the rights that docs/security.md gives it; `doctor` names them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from support.acls import grant, revoke
from support.ledger import Ledger, delivered_ledger
from support.secured import SecuredKafka

from light_scheduler.cli import cli
from light_scheduler.kafka.job_rights import JOBS, WITH_TARGETS, Job, job_rights
from light_scheduler.kafka.rights import Right, acl_commands
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.usefixtures("this_session"), pytest.mark.soak]

KIND = "SCRAM-SHA-512"
RUN_WITH: dict[str, Any] = {"report": (), "load": pytest.mark.soak}
READ_ONCE_MORE = ("load", "import")
"""These have something to read only when they are run again."""


class Place(NamedTuple):
    """An application that has delivered, an empty one, and a folder with an export and a table to load."""

    kafka: SecuredKafka
    ledger: Ledger
    folder: Path

    def environment(self, app_id: str) -> dict[str, str]:
        given = {**self.kafka.settings(KIND), "app_id": app_id, "partitions": str(self.ledger.partitions)}
        return {ENVIRONMENT_PREFIX + name.upper(): value for name, value in given.items()}

    def app_id(self, job: str) -> str:
        return f"{self.ledger.names.app_id}{'-new' if job == 'import' else ''}"

    def settings(self, job: str) -> Settings:
        return load_settings(environment=self.environment(self.app_id(job)))

    def run(self, job: str, *words: str) -> Result:
        return CliRunner().invoke(cli, words, env=dict(self.environment(self.app_id(job))))

    def words(self, job: str) -> list[str]:
        """Return what a job is asked to do."""
        more = {
            "load": [f"{self.folder}/rows.csv", "--format", "csv", "--set", f"target-topic={self.ledger.target}"],
            "import": [f"{self.folder}/exported"],
            "export": [f"{self.folder}/table"],
            "archive": [f"{self.folder}/archive"],
            "audit": ["--since-last", f"{self.folder}/audits", "--report", f"{self.folder}/audit.html"],
            "report": [],
            "forecast": [],
        }
        return ["pipeline", job, *more[job], "--json"]


@pytest.fixture
def place(secured: SecuredKafka, prefix: str, tmp_path: Path) -> Iterator[Place]:
    ledger = delivered_ledger(prefix, secured.servers)
    (tmp_path / "rows.csv").write_text("id,at\nid-1,2100-01-01T00:00:00Z\nid-2,2100-01-01T00:00:00Z\n")
    revoke(secured.servers, secured.principal(KIND))
    yield Place(secured, ledger, tmp_path)
    revoke(secured.servers, secured.principal(KIND))


@pytest.fixture
def exported(place: Place) -> None:
    """What an import needs: a table, and an application without schedules."""
    plain = load_settings(environment={}, options={"broker": f"kafka://{place.kafka.servers}"})
    create_topics(replace(plain, app_id=place.app_id("import"), partitions=place.ledger.partitions))
    words = ["pipeline", "export", f"{place.folder}/exported", "--broker", plain.broker]
    assert CliRunner().invoke(cli, [*words, "--app-id", place.app_id("export")]).exit_code == 0


def examined(place: Place, job: str, *words: str) -> tuple[int, set[str]]:
    """Return the doctor's exit code, and the commands that give the rights that are missing."""
    ran = place.run(job, "doctor", "--job", job, "--json", *words)
    assert ran.stdout, ran.output
    checks = json.loads(ran.stdout)["checks"]
    assert ("targets" in {check["name"] for check in checks}) == (job in WITH_TARGETS and not words)
    rights = [check for check in checks if check["name"] == "rights"]
    return ran.exit_code, {check["fix"] for check in rights} - {None}


def one_by_one(rights: list[Right]) -> Iterator[Right]:
    """Yield the rights as `doctor` names them."""
    for right in rights:
        operations = right.operations if right.resource == "topic" else (right.operations,)
        for operation in operations:
            yield replace(right, operations=operation if isinstance(operation, tuple) else (operation,))


@pytest.mark.parametrize("job", [pytest.param(job, marks=RUN_WITH.get(job, pytest.mark.every_case)) for job in JOBS])
def test_a_job_runs_with_exactly_its_rights_and_each_that_is_missing_is_named(
    place: Place, job: Job, request: pytest.FixtureRequest
) -> None:
    if job == "import":
        request.getfixturevalue("exported")
    settings, principal = place.settings(job), place.kafka.principal(KIND)
    for targets, words in (([], []), ([place.ledger.target], ["--target", place.ledger.target])):
        rights = [*one_by_one(job_rights(job, settings, targets))]
        missing = acl_commands(rights, principal, settings.bootstrap_servers)
        assert examined(place, job, *words) == (1, set(missing))
    assert place.run(job, *place.words(job)).exit_code == 1

    grant(place.kafka.servers, principal, job_rights(job, settings, [place.ledger.target]))
    assert examined(place, job) == (0, set())
    for _ in range(2 if job in READ_ONCE_MORE else 1):
        ran = place.run(job, *place.words(job))
        assert ran.exit_code == 0, ran.output
