"""How long threads wait for a processor."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from light_scheduler.host.processor_waits import SCHEDSTAT, WINDOW_S, ProcessorWaits

MS = 1_000_000


class Thread:
    """A thread's file, and the time, as they are set; `waits` has read it once."""

    def __init__(self, file: Path) -> None:
        self.file, self.now = file, 50.0
        self.ran, self.waited = 5_000 * MS, 3_000 * MS
        self.waits = ProcessorWaits(lambda: self.now, file)
        self.go_on(0, 0)
        assert self.waits.share() == 0.0, "what was before says nothing of the present"

    def go_on(self, ran_ms: int, waited_ms: int, took_s: float = WINDOW_S) -> None:
        self.now += took_s
        self.ran, self.waited = self.ran + ran_ms * MS, self.waited + waited_ms * MS
        self.file.write_text(f"{self.ran} {self.waited} 17\n")


@pytest.fixture
def thread(tmp_path: Path) -> Thread:
    return Thread(tmp_path / "schedstat")


@pytest.mark.parametrize(
    ("ran", "waited", "share"), [(20, 60, 0.75), (40, 0, 0.0), (0, 0, 0.0), (5, 15, 0.0), (7, 21, 0.75)]
)
def test_the_share_is_that_of_the_last_moment_if_it_waited_for_a_good_part_of_that(
    thread: Thread, ran: int, waited: int, share: float
) -> None:
    thread.go_on(ran, waited)
    assert thread.waits.share() == pytest.approx(share)


def test_the_file_is_not_read_at_each_question(thread: Thread) -> None:
    thread.go_on(20, 60)
    assert thread.waits.share() == pytest.approx(0.75)
    thread.go_on(100, 0, took_s=0.9 * WINDOW_S)
    assert thread.waits.share() == pytest.approx(0.75)


def test_a_thread_that_had_not_asked_for_long_has_not_waited_lately(thread: Thread) -> None:
    thread.go_on(1_000, 3_000, took_s=60.0)
    assert thread.waits.share() == 0.0


@pytest.mark.parametrize("content", [None, "", "what is this"])
def test_where_it_cannot_be_known_nobody_waits(thread: Thread, content: str | None) -> None:
    thread.go_on(20, 60)
    assert thread.waits.share() == pytest.approx(0.75)
    thread.go_on(0, 100)
    if content is None:
        thread.file.unlink()
    else:
        thread.file.write_text(content)
    assert thread.waits.share() == 0.0


@pytest.mark.skipif(not SCHEDSTAT.exists(), reason="only Linux tells")
def test_linux_tells_how_long_this_thread_has_run() -> None:
    begun, ran = time.thread_time(), int(SCHEDSTAT.read_bytes().split()[0])
    if not ran:
        pytest.skip("this kernel keeps no account of it")
    while time.thread_time() - begun < 0.2:
        sum(range(100_000))
    assert int(SCHEDSTAT.read_bytes().split()[0]) - ran >= 100 * MS
