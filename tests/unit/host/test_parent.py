"""Processes that end with the one that started them."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = (
    "import os, time\n"
    "from light_scheduler.host.parent import when_parent_ends\n"
    "when_parent_ends(lambda: os._exit(7))\n"
    "print('begun', flush=True)\n"
    "time.sleep(60)"
)


def test_the_end_of_standard_input_is_heard_and_what_is_written_there_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        child.stdin.write(b"anything")
        child.stdin.flush()
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(20) == 7
