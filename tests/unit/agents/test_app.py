"""What is overridden of Faust's application."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from unittest.mock import AsyncMock, Mock

import pytest
from faust.tables import TableManager

from light_scheduler.application import build
from light_scheduler.settings import Settings


async def test_a_start_does_not_wait_for_tables_that_there_are_none_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build(Settings(app_id="starts", data_dir=tmp_path))
    app.consumer = Mock(assignment=Mock(return_value=set()))
    tables, start = cast(TableManager, app.tables), AsyncMock()
    monkeypatch.setattr(tables, "sleep", Mock(side_effect=AssertionError("it waits")))
    monkeypatch.setattr(tables.recovery, "start", start)
    await tables.on_start()
    start.assert_awaited_once()
    assert tables._tables_registered.is_set()
