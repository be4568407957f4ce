"""`light-scheduler worker` with settings that cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from light_scheduler.host.listening import listening_at

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
