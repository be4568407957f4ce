"""Fixtures of the integration tests: an application of each test's own, with a worker or without one yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.application import Application

from light_scheduler.testing import Kafka


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """An application without a worker yet."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path)
    yield application
    application.close()


@pytest.fixture
async def served(application: Application) -> Application:
    """An application with one worker that runs."""
    await application.start_worker()
    return application


@pytest.fixture
async def impatient(application: Application) -> Application:
    """An application with one worker that tries nothing again: what is refused is a dead letter at once."""
    await application.start_worker(delivery_retries="0")
    return application
