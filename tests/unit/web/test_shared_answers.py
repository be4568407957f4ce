"""Answers that are shared within a short time: whose refusal is whose."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from light_scheduler.web.cluster.shared_answers import SharedAnswers
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits.shares import HOLDER, Holder
from light_scheduler.web.limits.turns import refusal

FRESH_S = 60.0


class Counting:
    """Something that is counted for holders, some of whom are refused, and one of whom may have a broken count."""

    def __init__(self, *refused: Holder, broken: Holder | None = None) -> None:
        self.made_for: list[Holder] = []
        self._refused = refused
        self._broken = broken
        self._answers = SharedAnswers[str, str]()

    async def asked_by(self, holder: Holder) -> str:
        HOLDER.set(holder)
        return await self._answers.answer("all", FRESH_S, self._make)

    async def _make(self) -> str:
        holder = HOLDER.get()
        self.made_for.append(holder)
        await asyncio.sleep(0)
        if holder == self._broken:
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "A partition is missing.")
        if holder in self._refused:
            raise refusal("counts")
        return f"counted for {holder}"


async def asked(counting: Counting, *holders: str) -> list[str]:
    """Return what each holder gets that asks at the same time: the answer, or the status of its problem."""

    async def answer(holder: str) -> str:
        try:
            return await counting.asked_by(holder)
        except ProblemError as error:
            return str(error.problem.status)

    return await asyncio.gather(*(asyncio.create_task(answer(holder)) for holder in holders))


async def test_all_who_ask_share_one_answer() -> None:
    counting = Counting()
    assert await asked(counting, "ops", "ops", "ci") == ["counted for ops"] * 3
    assert await asked(counting, "ci") == ["counted for ops"]
    assert counting.made_for == ["ops"]


@pytest.mark.parametrize("holders", [("busy", "ci", "ops"), ("busy", "busy", "ci"), ("ci", "busy", "busy")])
async def test_a_holder_without_room_leaves_no_refusal_to_the_others(holders: tuple[str, ...]) -> None:
    answers = await asked(Counting("busy"), *holders)
    for holder, answer in zip(holders, answers, strict=True):
        assert answer == "counted for ci" or (holder, answer) == ("busy", "429")


async def test_who_asks_after_a_refusal_of_somebody_else_is_counted_for() -> None:
    counting = Counting("busy")
    assert await asked(counting, "busy") == ["429"]
    assert await asked(counting, "busy") == ["429"]
    assert counting.made_for == ["busy"], "a holder that asks again at once is refused without another attempt"
    assert await asked(counting, "ci", "busy") == ["counted for ci"] * 2
    assert counting.made_for == ["busy", "ci"]


async def test_each_of_several_that_have_no_room_is_refused_once() -> None:
    counting = Counting("a", "b", "c")
    assert await asked(counting, "a", "b", "c") == ["429"] * 3
    assert counting.made_for == ["a", "b", "c"]


async def test_those_who_waited_for_a_refusal_of_somebody_else_do_not_wait_for_each_other() -> None:
    holders = [f"holder {number}" for number in range(20)]
    others_are_there = asyncio.Barrier(len(holders) - 1)

    class Slow(Counting):
        async def _make(self) -> str:
            if HOLDER.get() != holders[0]:
                await others_are_there.wait()
            return await super()._make()

    counting = Slow(*holders)
    async with asyncio.timeout(30):
        assert await asked(counting, *holders) == ["429"] * len(holders)
    assert sorted(map(str, counting.made_for)) == sorted(holders)


async def test_the_first_answer_is_for_all_and_ends_the_other_attempts() -> None:
    ended: list[Holder] = []

    class Stuck(Counting):
        async def _make(self) -> str:
            if HOLDER.get() in ("b", "d"):
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(HOLDER.get())
            return await super()._make()

    counting = Stuck("a")
    async with asyncio.timeout(30):
        assert await asked(counting, "a", "b", "c", "d") == ["429", *["counted for c"] * 3]
        assert await asked(counting, "a", "e") == ["counted for c"] * 2
    assert ended == ["b", "d"]
    assert counting.made_for == ["a", "c"]


async def test_a_refusal_ends_with_its_time_and_not_with_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    counting = Counting("a", "b", "c")
    for holder, after, attempts in (("a", 0, 1), ("b", 40, 2), ("a", 19, 2), ("a", 2, 3), ("c", 30, 4), ("b", 30, 5)):
        now += after
        assert await asked(counting, holder) == ["429"]
        assert len(counting.made_for) == attempts, (holder, now)


async def test_an_answer_that_fails_for_another_reason_is_shared() -> None:
    counting = Counting(broken="ops")
    assert await asked(counting, "ops", "ci") == ["503"] * 2
    assert counting.made_for == ["ops"]
