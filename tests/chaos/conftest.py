"""Fixtures of the chaos tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.application import Application
from support.witness import Witness

from light_scheduler.testing import Kafka


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """An application without a worker yet."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, session_timeout="3s")
    yield application
    application.close()


@pytest.fixture
def witness(application: Application) -> Iterator[Witness]:
    """What machine and broker make anybody wait, from before the test on."""
    with Witness(application.bootstrap_servers) as witness:
        yield witness
