"""How long a worker bears with a process that fills a table and reports nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.tables import rebuilding
from light_scheduler.tables.rebuilding import Job, Reached
from light_scheduler.tables.recovery import Following, Restoration
from light_scheduler.tables.usable_copy import ChangelogFacts

JOB = Job(
    clients=KafkaClients("127.0.0.1:9", 10_000),
    changelog="changelog",
    commands="commands",
    partition=0,
    facts=ChangelogFacts("id", 1),
    path="state",
    log_level="INFO",
    log_format="text",
)
LOOKS = 4
"""So often a process does nothing until it is given up."""


class Rebuilder:
    """A process that reports nothing; `looks` has what is seen of it each time, then it reports all and ends."""

    pid = 77

    def __init__(self, *looks: bool) -> None:
        self.stdin = self
        self.stdout = asyncio.StreamReader()
        self.looked = 0
        self._looks = looks

    def write(self, line: bytes) -> None:
        assert line.endswith(b"\n")

    async def wait(self) -> int:
        return 0

    def goes_on(self) -> bool:
        self.looked += 1
        if self.looked == len(self._looks):
            self.stdout.feed_data(msgspec.json.encode(Reached(9, 9, 5)) + b"\n")
            self.stdout.feed_eof()
        return self._looks[min(self.looked, len(self._looks)) - 1]

    async def followed(self, stopping: Callable[[], bool] = lambda: False) -> Restoration | None:
        return await rebuilding._follow(cast(Any, self), JOB, Following(stopping, lambda _: None))


@pytest.fixture
def rebuilder(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rebuilder]:
    def make(*looks: bool) -> Rebuilder:
        made = Rebuilder(*looks)
        monkeypatch.setattr(rebuilding, "LOOK_S", 0.01)
        monkeypatch.setattr(rebuilding, "STALL_TIMEOUT_S", LOOKS * 0.01)
        monkeypatch.setattr(rebuilding, "Activity", lambda pid: made if pid == made.pid else None)
        return made

    return make


@pytest.mark.parametrize(
    "looks",
    [(True,) * 5 * LOOKS, ((False,) * (LOOKS - 1) + (True,)) * 3],
    ids=["busy all the time", "busy now and then"],
)
async def test_a_process_that_does_something_has_all_the_time_for_a_step(
    rebuilder: Callable[..., Rebuilder], looks: tuple[bool, ...]
) -> None:
    restoration = await rebuilder(*looks).followed()
    assert restoration is not None
    assert (restoration.status().done, restoration.records) == (9, 5)


async def test_a_process_that_does_nothing_is_given_up(
    rebuilder: Callable[..., Rebuilder], caplog: pytest.LogCaptureFixture
) -> None:
    frozen = rebuilder(True, *(False,) * 3 * LOOKS)
    assert await frozen.followed() is None
    assert frozen.looked == 1 + LOOKS
    assert "the process rebuilding commands-0 stands still" in caplog.text


async def test_nobody_waits_for_a_process_that_is_not_wanted_any_more(rebuilder: Callable[..., Rebuilder]) -> None:
    busy = rebuilder(*(True,) * 1_000)
    assert await busy.followed(lambda: busy.looked == 2) is None
    assert busy.looked == 2
