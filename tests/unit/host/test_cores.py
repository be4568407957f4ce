"""How many cores there are to use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from light_scheduler.host.cores import cores


@pytest.mark.parametrize(
    ("quota", "found"),
    [
        ("max 100000\n", 8),
        ("400000 100000\n", 4),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("9000000 100000\n", 8),
        ("nonsense", 8),
        (None, 8),
    ],
)
def test_a_container_has_no_more_cores_than_its_share(
    quota: str | None, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    file = tmp_path / "cpu.max"
    if quota is not None:
        file.write_text(quota)
    assert cores(file) == found
