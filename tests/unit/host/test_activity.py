"""Whether another process goes on with its work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import eventually_blocking

from light_scheduler.host.activity import Activity

PID = 77


class Process:
    """What /proc says of a process, as it is set; `activity` has looked at it once."""

    def __init__(self, proc: Path) -> None:
        self.folder = proc / str(PID)
        self.tells(ticks=50, states="S")
        self.activity = Activity(PID, proc)
        assert self.activity.goes_on(), "it has run before"

    def tells(self, *, ticks: int, states: str) -> None:
        shutil.rmtree(self.folder / "task", ignore_errors=True)
        for number, state in enumerate(states):
            thread = self.folder / "task" / str(PID + number)
            thread.mkdir(parents=True, exist_ok=True)
            (thread / "stat").write_text(self._stat(state, ticks=0))
        (self.folder / "stat").write_text(self._stat(states[0], ticks=ticks))

    @staticmethod
    def _stat(state: str, *, ticks: int) -> str:
        used = f"{ticks - ticks // 3} {ticks // 3}"
        return f"{PID} (a) R (b) {state} 1 77 77 0 -1 4194304 9 9 9 9 {used} 8 8 20 0 1 0 5 6 7\n"


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


@pytest.mark.parametrize(
    ("ticks", "states", "goes_on"),
    [
        (51, "S", True),  # it has taken processor time
        (50, "R", True),  # it waits for a processor
        (50, "SSD", True),  # one of its threads waits for the disk
        (50, "SS", False),
        (50, "TT", False),
        (50, "Z", False),
    ],
)
def test_a_process_goes_on_if_it_runs_or_waits_for_a_processor_or_the_disk(
    process: Process, ticks: int, states: str, goes_on: bool
) -> None:
    process.tells(ticks=ticks, states=states)
    assert process.activity.goes_on() is goes_on
    process.tells(ticks=ticks, states="S")
    assert not process.activity.goes_on(), "nothing since"


@pytest.mark.parametrize("content", [None, "", "77 (a) S 1"])
def test_where_it_cannot_be_known_nothing_goes_on(process: Process, content: str | None) -> None:
    if content is None:
        (process.folder / "stat").unlink()
    else:
        (process.folder / "stat").write_text(content)
    assert not process.activity.goes_on()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells")
def test_linux_tells_a_process_that_works_from_one_that_is_stopped() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            activity = Activity(process.pid)
            for _ in range(3):
                eventually_blocking(activity.goes_on)
            os.kill(process.pid, signal.SIGSTOP)
            eventually_blocking(lambda: not activity.goes_on())
            assert not activity.goes_on()
        finally:
            process.kill()
