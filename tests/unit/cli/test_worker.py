"""`light-scheduler worker` with settings that cannot be, and when it has a supervisor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.host.listening import listening_at
from light_scheduler.settings import Settings

PROGRAM = (sys.executable, "-c", "from light_scheduler.cli import main; main()", "worker")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_port_in_use_ends_it_as_a_wrong_setting_does(processes: str, tmp_path: Path) -> None:
    (taken,) = listening_at("127.0.0.1", 0)
    with taken:
        port = taken.getsockname()[1]
        options = ("--web-port", str(port), "--data-dir", str(tmp_path / "state"), "--processes", processes)
        ran = subprocess.run([*PROGRAM, *options], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert ran.returncode == 2
    assert f"{port} of 127.0.0.1" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("processes", "cores", "count"), [("auto", 1, 1), ("auto", 3, 3), ("1", 4, 1)], ids=["one core", "three", "one"]
)
def test_under_systemd_that_waits_to_hear_there_is_a_supervisor_for_a_single_process_too(
    monkeypatch: pytest.MonkeyPatch, processes: str, cores: int, count: int
) -> None:
    counts: list[int] = []

    def run(_: Settings, count: int) -> int:
        counts.append(count)
        return 0

    monkeypatch.setenv("NOTIFY_SOCKET", "@systemd")
    monkeypatch.setattr("light_scheduler.cli.worker.cores", lambda: cores)
    monkeypatch.setattr("light_scheduler.node.run", run)
    monkeypatch.setitem(sys.modules, "light_scheduler.application", None)  # what a worker without one would import
    ran = CliRunner().invoke(cli, ["worker", "--processes", processes])
    assert (ran.exit_code, counts) == (0, [count])
