"""Fixtures of the tests on a Kafka with TLS, logins and ACLs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.application import Application
from support.secured import SecuredKafka


@pytest.fixture
async def application(secured: SecuredKafka, tmp_path: Path) -> AsyncIterator[Application]:
    """An application without a worker yet."""
    application = await Application.create(secured.servers, tmp_path)
    yield application
    application.close()
