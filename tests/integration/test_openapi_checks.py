"""All checks of schemathesis on every operation of a worker that has commands topics of every dialect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import requests
from openapi_spec_validator import validate
from support.api_checks import failures
from support.api_workflows import Topics
from support.application import Application
from support.waiting import eventually_blocking

from light_scheduler.clock import SystemClock
from light_scheduler.devkit.worker_process import worker_environment
from light_scheduler.settings.values import DIALECTS
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """An application with an input of every dialect, and a worker that asks for tokens."""
    name = f"inputs-{SystemClock().now()}"
    topics = ",".join(f"{name}-{dialect}:{dialect}" for dialect in DIALECTS)
    application = await Application.create(kafka.bootstrap_servers, tmp_path, commands_topics=topics, partitions="2")
    await application.create_topic(f"{application.target}-source")
    yield application
    application.close()


def token_of(application: Application) -> str:
    words = ["tokens", "create", "ops", "--role", "admin", "--all-tenants", "--json"]
    made = subprocess.run(
        [*PROGRAM, *words],
        check=True,
        env=worker_environment(application.settings),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return str(json.loads(made.stdout)["token"])


@pytest.mark.soak
@pytest.mark.timeout(1_200)
async def test_every_operation_passes_every_check(application: Application, request: pytest.FixtureRequest) -> None:
    token, worker = token_of(application), await application.start_worker()
    headers = {"Authorization": f"Bearer {token}"}

    def described() -> requests.Response | None:
        answer = requests.get(f"{worker.url}/api/v1/openapi.json", headers=headers, timeout=60)
        return answer if answer.ok else None

    document = eventually_blocking(described, every=0.1, what="a worker that knows the token").json()
    validate(document)
    topics = Topics(application.settings.inputs[0].name, f"{application.target}-source", application.target)
    borders = request.config.getoption("--every-case")
    found, asked = failures(document, worker.url, token, topics, examples=4, borders=borders)
    assert not found, f"{len(found)}:\n" + "\n\n".join(found[:10])
    every = {each["operationId"] for methods in document["paths"].values() for each in methods.values()}
    assert asked == every
