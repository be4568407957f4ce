from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from light_scheduler.client import Receipt
from light_scheduler.client.bulk_results import Answer, BulkAnswers, NotInAllTopics, answers_of, of_all_topics
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.errors import BrokerError
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


def test_a_failure_that_passes_by_itself_does_not_hide_one_that_does_not() -> None:
    over_quota = result(Outcome.REJECTED, reason="too many", field="quota.bulk_commands")
    not_found = result(Outcome.NOT_FOUND, reason="none")
    answer = of_all_topics({"a": over_quota, "b": not_found})
    assert answer == result(Outcome.NOT_FOUND, reason="a: too many; b: none")
    assert of_all_topics({"a": over_quota, "b": over_quota}).field == "quota.bulk_commands"


GONE, LATE = BrokerError("gone."), ResultTimeout("no answer", Receipt("default", "*", 3, 17))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"a": result(count=3), "b": GONE, "c": result()}, "It was carried out in a, c. b: gone"),
        ({"a": LATE, "b": result(count=3)}, "It was carried out in b. a: no answer"),
        ({"a": LATE, "b": GONE}, "a: no answer. b: gone"),
        ({"a": LATE.receipt, "b": GONE}, "It was sent to a, and will be carried out. b: gone"),
        (
            {"a": GONE, "b": result(Outcome.REJECTED, field="id", reason="no"), "c": result(Outcome.NOT_FOUND)},
            "b refused it: id: no. c refused it: not_found. a: gone",
        ),
    ],
)
def test_if_a_topic_does_not_answer_the_error_says_what_came_of_the_command_in_each(
    answers: dict[str, Answer], said: str
) -> None:
    with pytest.raises(NotInAllTopics, match=f"^{re.escape(said)}$") as raised:
        BulkAnswers(answers).as_one()
    assert raised.value.answers == BulkAnswers(answers)


def test_the_error_of_the_only_topic_is_raised_as_it_is_and_the_first_receipt_stands_for_all() -> None:
    with pytest.raises(ResultTimeout) as raised:
        BulkAnswers({"a": LATE}).as_one()
    assert raised.value is LATE
    receipt = Receipt("default", "*", 1, 2)
    assert BulkAnswers({"a": receipt, "b": LATE.receipt}).as_one() is receipt
    assert BulkAnswers({"a": result(count=1), "b": result(count=2)}).as_one() == result(count=3)


async def test_an_error_of_one_breaks_off_no_other() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def fails(error: Exception) -> str:
        begun.set()
        raise error

    async def goes_on() -> str:
        await begun.wait()
        await asyncio.sleep(0)
        ended.set()
        return "done"

    with pytest.raises(ValueError, match=r"^one$"):
        await answers_of({"a": fails(ValueError("one")), "b": goes_on()})
    assert ended.is_set()
    assert await answers_of({"a": fails(GONE), "b": goes_on()}) == {"a": GONE, "b": "done"}
