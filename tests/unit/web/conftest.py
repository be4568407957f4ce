"""Fixtures of the tests of HTTP: workers of a cluster in memory, and limits that no test meets by chance."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.web_cluster.cluster import MemoryCluster, MemoryWorker, with_topics
from support.web_cluster.schedules import TOPIC

from light_scheduler.cli import main
from light_scheduler.web import delays, dry_run, looking_back, preview, request_limits, why
from light_scheduler.web.cluster import answers as cluster_answers
from light_scheduler.web.cluster import bounded, node, own_answers, peer_client
from light_scheduler.web.cluster import state as cluster_state
from light_scheduler.web.etf1 import history as etf1_history
from light_scheduler.web.limits import counts as count_limits
from light_scheduler.web.limits import slices

BUDGETS = {
    bounded: ("REQUEST_TIME_S",),
    cluster_state: ("TOTAL_TIMEOUT_S",),
    count_limits: ("REQUEST_TIME_S", "WHOLE_PATIENCE_S", "OWN_PATIENCE_S"),
    delays: ("TOTAL_TIMEOUT_S",),
    dry_run: ("MOST_TIME_S",),
    etf1_history: ("MOST_TIME_S",),
    looking_back: ("PAGE_TIME_S",),
    node: ("ANSWER_S",),
    peer_client: ("CONNECT_TIMEOUT_S",),
    own_answers: ("REQUEST_TIME_S", "SEARCH_TIME_S"),
    preview: ("MOST_TIME_S",),
    request_limits: ("PATIENCE_S", "WORK_PATIENCE_S", "BODIES_PATIENCE_S"),
    cluster_answers: ("TOTAL_TIMEOUT_S", "GRACE_S"),
    why: ("MOST_TIME_S",),
}
"""By module, the time that an answer may take of the processor or of who waits for it."""


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers whole on a machine that is busy, or collects garbage; tests of a limit set it themselves."""
    for module, names in BUDGETS.items():
        for name in names:
            monkeypatch.setattr(module, name, 60.0)


@pytest.fixture
async def cluster() -> AsyncIterator[MemoryCluster]:
    """Return a cluster without workers; they are stopped at the end."""
    cluster = MemoryCluster()
    yield cluster
    for worker in cluster.workers:
        await worker.stop()


@pytest.fixture
def commands_topics() -> str:
    """Return the setting of `workers`; modules about a dialect have their own."""
    return TOPIC


@pytest.fixture
async def workers(cluster: MemoryCluster, commands_topics: str) -> list[MemoryWorker]:
    """Return two workers: the first has the partitions 0 and 2, the second 1 and 3."""
    if commands_topics != TOPIC:
        cluster.settings = with_topics(commands_topics)
    return await cluster.start([0, 2], [1, 3])


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[slices.LoopTime]:
    """Have every slice end after one row, and return a list that grows with each rest."""
    monkeypatch.setattr(slices, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    rest = slices.LoopTime.rest
    rests: list[slices.LoopTime] = []

    async def noted(self: slices.LoopTime) -> None:
        rests.append(self)
        await rest(self)

    monkeypatch.setattr(slices.LoopTime, "rest", noted)
    return rests


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the command line beside the loop: (arguments) -> (exit code, stdout, stderr)."""

    def call() -> int:
        with pytest.raises(SystemExit) as exit:
            main()
        return exit.value.code  # type: ignore[return-value]

    async def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["light-scheduler", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        code = await asyncio.to_thread(call)
        return code, *capsys.readouterr()

    return run
