"""Requests that work slice by slice: short ones do not wait until a long one of somebody else is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from support.holders import request_of

from light_scheduler.web import request_limits
from light_scheduler.web.cluster import own_answers
from light_scheduler.web.cluster.answers import TOTAL_TIMEOUT_S
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits import counts as count_limits
from light_scheduler.web.limits import sliced_turns, slices
from light_scheduler.web.limits.sliced_turns import LONG_SLICES, MOST_GIVEN_S, SHORT_SLICES, SlicedTurns
from light_scheduler.web.limits.slices import LoopTime


@pytest.fixture(autouse=True)
def no_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice ends with each look at the time, and nobody has the loop for longer than the others need it."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(slices, "REST", 0.0)
    monkeypatch.setattr(sliced_turns, "REFUSE_AFTER_S", 0)
    monkeypatch.setattr(sliced_turns, "MOST_GIVEN_S", 60.0)  # however slow the machine is


async def until(holds: Callable[[], bool]) -> None:
    """Let others run until a condition holds, and no longer."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0)


class Requests:
    """Requests of holders; `slices` are the names of those that had them."""

    def __init__(self, turns: SlicedTurns) -> None:
        self._turns = turns
        self.slices: list[str] = []
        self.done: list[str] = []
        self._in_slice: str | None = None

    def begin(self, name: str, slices: int, holder: str = "") -> asyncio.Task[None]:
        """Begin a request that takes so many slices; its holder is the first letter of its name."""
        return asyncio.create_task(self._work(name, slices, holder or name[0]))

    async def _work(self, name: str, slices: int, holder: str) -> None:
        with request_of(holder):
            async with self._turns.turn(), LoopTime(rest=0.0) as time:
                await self._slice(name)
                for _ in range(slices - 1):
                    await time.rest()
                    await self._slice(name)
        self.done.append(name)

    async def _slice(self, name: str) -> None:
        assert self._in_slice is None
        self._in_slice = name
        self.slices.append(name)
        try:
            await asyncio.sleep(0)
        finally:
            self._in_slice = None


@pytest.fixture
def turns() -> SlicedTurns:
    return SlicedTurns("requests", waiting=64, patience_s=60)


@pytest.fixture
def requests(turns: SlicedTurns) -> Requests:
    return Requests(turns)


async def test_a_short_request_waits_for_some_slices_of_anothers_long_one(requests: Requests) -> None:
    long = requests.begin("a", 100)
    await until(lambda: len(requests.slices) > 10)
    began = len(requests.slices)
    await requests.begin("b", 1)
    assert "b" in requests.slices[began : began + LONG_SLICES + 1]
    assert not long.done()
    await long
    assert requests.slices.count("a") == 100


async def test_the_long_one_has_most_slices_whatever_number_of_others_come(requests: Requests) -> None:
    tasks = [requests.begin("a", 60)]
    tasks += [requests.begin(f"{holder}{number}", 2) for number in range(5) for holder in "bcd"]
    await asyncio.gather(*tasks)
    first, last = requests.slices.index("a"), len(requests.slices) - requests.slices[::-1].index("a")
    between = requests.slices[first:last]
    others = [at for at, name in enumerate(between) if name != "a"]
    assert len(others) >= 15
    assert all(after - before > LONG_SLICES for before, after in pairwise(others))


async def test_holders_have_slices_in_turn(requests: Requests) -> None:
    tasks = [requests.begin("a", 60)]
    tasks += [requests.begin(f"b{number}", 1) for number in range(10)]
    tasks += [requests.begin("c0", 3), requests.begin("d0", 1)]
    await asyncio.gather(*tasks)
    others = [name for name in requests.slices if name != "a"]
    assert others[:6] == ["b0", "c0", "d0", "b1", "c0", "b2"]


async def test_requests_of_one_holder_come_one_after_the_other(requests: Requests) -> None:
    tasks = [requests.begin(name, slices) for name, slices in (("a0", 30), ("a1", 1), ("a2", 30))]
    await asyncio.gather(*tasks)
    assert requests.done == ["a0", "a1", "a2"]
    assert requests.slices == ["a0"] * 30 + ["a1"] + ["a2"] * 30


async def test_the_long_one_waits_for_others_for_a_bounded_time(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliced_turns, "MOST_GIVEN_S", 0.0)  # which it has waited for after the first of their slices
    tasks = [requests.begin("a", 60), requests.begin("b", 3), requests.begin("c", 1)]
    await asyncio.gather(*tasks)
    assert requests.slices[:60] == ["a"] * 60


async def test_a_later_request_of_a_holder_does_not_come_before_one_that_turned_out_long(requests: Requests) -> None:
    tasks = [requests.begin("a", 200), requests.begin("b0", 50)]
    await until(lambda: requests.slices.count("b0") == SHORT_SLICES)
    tasks.append(requests.begin("b1", 12))
    await asyncio.gather(*tasks)
    assert requests.done == ["a", "b0", "b1"]


@pytest.mark.parametrize(
    ("patience_s", "time_s", "rest"),
    [
        pytest.param(request_limits.WORK_PATIENCE_S, own_answers.REQUEST_TIME_S, slices.REST, id="lists"),
        pytest.param(count_limits.OWN_PATIENCE_S, count_limits.REQUEST_TIME_S, slices.SHORT_REST, id="counts"),
    ],
)
def test_a_worker_that_asks_another_one_waits_for_as_long_as_it_may_take(
    patience_s: float, time_s: float, rest: float
) -> None:
    assert patience_s + time_s * (1 + rest) + MOST_GIVEN_S < TOTAL_TIMEOUT_S


async def test_a_request_that_turns_out_long_waits_until_the_one_at_work_is_done(requests: Requests) -> None:
    tasks = [requests.begin("a", 200), requests.begin("b", 50), requests.begin("c", 1)]
    await asyncio.gather(*tasks)
    assert requests.done == ["c", "a", "b"]
    of_a = requests.slices[: 200 + SHORT_SLICES + 1]
    assert (of_a.count("b"), of_a.count("a")) == (SHORT_SLICES, 200)


async def test_between_slices_a_request_loses_its_patience_too_and_leaves_the_turn_to_others() -> None:
    requests = Requests(turns := SlicedTurns("requests", waiting=64, patience_s=1.0))
    goes_on = asyncio.Event()

    async def hold() -> None:
        with request_of("a"):
            async with turns.turn(), LoopTime(rest=0.0) as time:
                for _ in range(SHORT_SLICES * (LONG_SLICES + 1)):
                    await time.rest()
                await goes_on.wait()

    holding = asyncio.create_task(hold())
    await asyncio.sleep(0)
    paused = requests.begin("b", 2 * SHORT_SLICES)
    with pytest.raises(ProblemError) as refused:
        await paused
    assert refused.value.problem.status == 429
    assert requests.slices == ["b"] * SHORT_SLICES
    with pytest.raises(ProblemError):
        await requests.begin("c", 1)
    goes_on.set()
    await holding
    await requests.begin("b", 2)
    assert turns._waiting == {}


async def test_a_request_that_waits_between_slices_counts_for_its_holder() -> None:
    requests = Requests(SlicedTurns("requests", waiting=4, patience_s=60))
    long = requests.begin("a", 500)
    paused = requests.begin("b0", 100)
    await until(lambda: requests.slices.count("b0") == SHORT_SLICES)
    waiting = requests.begin("b1", 100)
    await until(lambda: "b1" in requests.slices)
    with pytest.raises(ProblemError):
        await requests.begin("b2", 1)
    await requests.begin("c", 1)
    assert not long.done()
    await asyncio.gather(long, paused, waiting)


@pytest.mark.parametrize("cancelled", ["at work", "between", "waiting"])
async def test_a_request_that_is_cancelled_holds_nobody_up(turns: SlicedTurns, cancelled: str) -> None:
    requests = Requests(turns)
    tasks = {
        "at work": requests.begin("a", 10_000),
        "between": requests.begin("b", 10_000),
        "waiting": requests.begin("c", 10_000),
    }
    await until(lambda: requests.slices.count("c") == SHORT_SLICES)
    await requests.begin("d", 1)
    tasks[cancelled].cancel()
    await requests.begin("d", 1)
    for task in tasks.values():
        task.cancel()
    await asyncio.wait(tasks.values())
    await requests.begin("d", 1)
    assert turns._waiting == {}
    assert turns._in_slice is None
    assert not turns._places._used


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_is_cancelled_at_whatever_moment_one_works_at_a_time_and_all_others_end(seed: int) -> None:
    random, requests = Random(seed), Requests(turns := SlicedTurns("requests", waiting=10_000, patience_s=60))
    tasks: dict[str, asyncio.Task[None]] = {}
    gone: set[str] = set()
    for number in range(60):
        name = f"{random.choice('abc')}{number}"
        tasks[name] = requests.begin(name, random.choice([1, 2, SHORT_SLICES + 1, 40]))
        for _ in range(random.randrange(6)):
            await asyncio.sleep(0)
        if random.random() < 0.4:
            gone.add(name := random.choice(list(tasks)))
            tasks[name].cancel()
    await asyncio.wait(tasks.values())
    ended = {name for name, task in tasks.items() if not task.cancelled()}
    assert ended >= tasks.keys() - gone
    assert all(tasks[name].exception() is None for name in ended)
    assert (turns._waiting, turns._in_slice, turns._places._used) == ({}, None, 0)
