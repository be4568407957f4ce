from __future__ import annotations

import asyncio
from typing import Any

import pytest

from light_scheduler.client.bulk_results import all_done, of_all_topics
from light_scheduler.model import Outcome, Result


def result(outcome: Outcome = Outcome.CANCELLED, **more: Any) -> Result:
    return Result("cancel", "default", "*", outcome, **more)


def test_counts_of_all_topics_are_added_and_each_reason_names_its_topic() -> None:
    results = {"a": result(count=3, partition=1, offset=7), "b": result(count=0, reason="x"), "c": result(count=2)}
    assert of_all_topics(results) == result(count=5, reason="b: x", partition=1, offset=7)
    same = {"a": result(count=1, reason="x"), "b": result(count=1, reason="x")}
    assert of_all_topics(same).reason == "a: x; b: x"


@pytest.mark.parametrize("failure", [Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND])
def test_a_failure_in_one_topic_is_the_answer_and_says_where_the_command_was_carried_out(failure: Outcome) -> None:
    failed = result(failure, reason="no", field="id")
    answer = of_all_topics({"a": result(count=3), "b": failed, "c": result(count=1)})
    assert answer == result(failure, reason="b: no; it was carried out in a, c", field="id", count=4)
    assert of_all_topics({"a": failed, "b": failed}).reason == "a: no; b: no"


@pytest.mark.parametrize("only", [result(), result(Outcome.REJECTED, reason="no"), result(count=2, reason="x")])
def test_the_result_of_one_topic_is_as_it_came(only: Result) -> None:
    assert of_all_topics({"a": only}) is only


async def test_an_error_of_one_breaks_off_no_other() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def fails() -> str:
        begun.set()
        raise ValueError("one")

    async def goes_on() -> str:
        await begun.wait()
        await asyncio.sleep(0)
        ended.set()
        return "done"

    with pytest.raises(ValueError, match=r"^one$"):
        await all_done([fails(), goes_on()])
    assert ended.is_set()
    assert await all_done([goes_on()]) == ["done"]
