"""Fixtures of the contract tests."""

from __future__ import annotations

import pytest
from support.producing import FakeProducer


@pytest.fixture
async def producer() -> FakeProducer:
    return FakeProducer()
