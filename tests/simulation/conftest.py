"""Fixtures of the simulation."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Free the tasks of killed processes, which asyncio tells of where they are freed: not deep in another test."""
    yield
    gc.collect()
