"""A command on a leash ends as it should, and never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import process_runs

from light_scheduler.devkit import Leash
from light_scheduler.devkit.waiting import wait_until

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]

# Ignores SIGTERM, and says when it does so.
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ignoring', flush=1); time.sleep(600)",
]

# A parent with a child on a leash: prints the child's pid, then waits to be killed.
PARENT = """
import sys, time
from pathlib import Path
from light_scheduler.devkit import Leash
from light_scheduler.devkit.leash import WhenOrphaned
folder, command = Path(sys.argv[1]), sys.argv[2:]
leash = Leash(command, when_orphaned=WhenOrphaned(0.5, folder))
print(leash.pid, flush=True)
time.sleep(600)
"""


def test_exit_code_is_passed_on() -> None:
    assert Leash([sys.executable, "-c", "raise SystemExit(7)"]).wait(30) == 7


def test_death_by_a_signal_is_passed_on() -> None:
    leash = Leash(SLEEPER)
    assert leash.kill() == -signal.SIGKILL
    assert leash.poll() == -signal.SIGKILL


def test_stop_asks_with_sigterm() -> None:
    assert Leash(SLEEPER).stop(30) == -signal.SIGTERM


def test_stop_kills_what_ignores_sigterm(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("wb") as file:
        leash = Leash(STUBBORN, output=file)
    wait_until(lambda: output.read_bytes() == b"ignoring\n", timeout=60, what="the condition")
    assert leash.stop(timeout=0.2) == -signal.SIGKILL


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(OSError, match="no-such-command"):
        Leash(["no-such-command"])


def test_signals_after_the_end_are_ignored() -> None:
    leash = Leash([sys.executable, "-c", ""])
    leash.wait(30)
    leash.send_signal(signal.SIGTERM)
    assert leash.stop() == 0


@pytest.mark.parametrize("command", [SLEEPER, STUBBORN], ids=["obedient", "stubborn"])
def test_a_killed_parent_takes_the_command_with_it(command: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", PARENT, str(folder), *command], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        try:
            # The command has the same output, and may be the first to write.
            pid = next(int(line) for line in parent.stdout if line.strip().isdigit())
            assert process_runs(pid)
        finally:
            parent.kill()
        parent.wait()
        wait_until(lambda: not process_runs(pid), timeout=60, what="the condition")
        wait_until(lambda: not folder.exists(), timeout=60, what="the condition")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_a_killed_leash_takes_the_command_with_it() -> None:
    leash = Leash(SLEEPER)
    os.kill(leash._process.pid, signal.SIGKILL)
    wait_until(lambda: not process_runs(leash.pid), timeout=60, what="the condition")
    assert leash.wait(30) == -signal.SIGKILL
