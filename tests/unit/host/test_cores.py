"""How many cores there are to use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from light_scheduler.host.cores import cores, quotas


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
    assert cores([file]) == found


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ({"": "400000 100000"}, 4),
        ({"system.slice": "300000 100000"}, 3),
        ({"system.slice/scheduler.service": "200000 100000"}, 2),
        ({"system.slice": "max 100000", "system.slice/scheduler.service": "200000 100000"}, 2),
        ({"system.slice": "100000 100000", "system.slice/scheduler.service": "200000 100000"}, 1),
        ({"other.slice": "100000 100000"}, 8),
        ({}, 8),
    ],
)
def test_a_service_has_no_more_cores_than_any_group_that_it_is_in(
    shares: dict[str, str], found: int, tmp_path: Path
) -> None:
    for group, share in shares.items():
        (tmp_path / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / group / "cpu.max").write_text(share)
    membership = tmp_path / "cgroup"
    membership.write_text("4:memory:/elsewhere\n0::/system.slice/scheduler.service\n")
    assert cores(quotas(membership, tmp_path)) == found


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(("quota", "found"), [("250000", 3), ("-1", 8)])
@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu,cpuacct/docker/1f"])
def test_the_shares_of_an_older_control_group_count_too(quota: str, found: int, folder: str, tmp_path: Path) -> None:
    """In a container, its own group is at the top, whatever the name of that is outside."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / folder / "cpu.cfs_period_us").write_text("100000\n")
    membership = tmp_path / "cgroup"
    membership.write_text("4:cpu,cpuacct:/docker/1f\n1:name=systemd:/\n")
    assert cores(quotas(membership, tmp_path)) == found


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("text", [None, "", "nonsense", "0::", "0::/../../x"])
def test_what_cannot_be_read_limits_nothing(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "cgroup").write_text(text)
    assert cores(quotas(tmp_path / "cgroup", tmp_path / "none")) == 8
