"""Waiting for a condition."""

from __future__ import annotations

from itertools import count

import pytest
from support.waiting import eventually, eventually_blocking


async def test_the_first_true_answer_is_returned() -> None:
    numbers = count()
    assert await eventually(lambda: next(numbers), every=0) == 1


async def test_a_condition_may_be_a_coroutine_function() -> None:
    numbers = count()

    async def number() -> int:
        return next(numbers)

    assert await eventually(number, every=0) == 1


async def test_a_condition_that_never_holds_is_told_with_its_last_answer() -> None:
    with pytest.raises(TimeoutError, match=r"a row: not within 0.01 s; the last answer was \[\]"):
        await eventually(list, within=0.01, every=0.001, what="a row")


async def test_what_a_condition_raises_ends_the_wait() -> None:
    with pytest.raises(ZeroDivisionError):
        await eventually(lambda: 1 // 0)


class TestWithoutAnEventLoop:
    def test_the_first_true_answer_is_returned(self) -> None:
        numbers = count()
        assert eventually_blocking(lambda: next(numbers), every=0) == 1

    def test_a_condition_that_never_holds_is_told_with_its_last_answer(self) -> None:
        with pytest.raises(TimeoutError, match=r"a row: not within 0.01 s; the last answer was \[\]"):
            eventually_blocking(list, within=0.01, every=0.001, what="a row")

    def test_what_a_condition_raises_ends_the_wait(self) -> None:
        with pytest.raises(ZeroDivisionError):
            eventually_blocking(lambda: 1 // 0)
