"""Fixtures of the tests of lanes."""

from __future__ import annotations

from typing import Any

import pytest
from support.partition import Partition


@pytest.fixture
async def partition(producer: Any) -> Partition:
    """A partition whose lane runs a cycle when it is told to."""
    return Partition(producer)
