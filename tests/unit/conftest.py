"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.producing import FakeProducer


@pytest.fixture
async def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def settings_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "settings.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
