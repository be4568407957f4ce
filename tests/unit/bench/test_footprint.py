from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from light_scheduler.bench.footprint import cpu_seconds, disk_bytes, idle_cpu_percent, rss_bytes


def test_disk_is_the_size_of_all_files_at_any_depth(tmp_path: Path) -> None:
    assert disk_bytes(tmp_path) == 0
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "x").write_bytes(b"1" * 10)
    (tmp_path / "a" / "b" / "y").write_bytes(b"2" * 5)
    assert disk_bytes(tmp_path) == 15


def test_a_process_that_holds_more_has_more_memory() -> None:
    program = (
        "import sys; print(flush=True); sys.stdin.readline(); held = b'1' * (64 << 20); print(flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before = rss_bytes(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        after = rss_bytes(process.pid)
        process.communicate(b"\n")
    assert before is not None
    assert after is not None
    assert after - before > 32 << 20


def test_a_process_that_sleeps_is_idle() -> None:
    percent = idle_cpu_percent(os.getpid(), 0.2)
    assert percent is not None
    assert 0 <= percent < 60


def test_a_process_has_used_the_time_of_its_threads_and_of_the_kernel_for_it() -> None:
    assert cpu_seconds(os.getpid()) == pytest.approx(sum(os.times()[:2]), abs=0.5)


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(30)
    assert rss_bytes(process.pid) is None
    assert cpu_seconds(process.pid) is None
    assert idle_cpu_percent(process.pid, 0.0) is None
