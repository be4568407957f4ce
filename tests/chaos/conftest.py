"""Fixtures of the chaos tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.application import Application

from light_scheduler.testing import Kafka


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """An application without a worker yet."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, session_timeout="3s")
    yield application
    application.close()
