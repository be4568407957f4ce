"""The contract of schedule tables holds for every store: in memory, and in RocksDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tables import DISKS, Tables


@pytest.fixture(params=DISKS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    tables = Tables(request.param(tmp_path))
    yield tables
    tables.table.close()
