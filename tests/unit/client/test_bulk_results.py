from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.client.bulk_results import of_all_topics
from light_scheduler.model import Outcome, Result


def result(outcome: Outcome = Outcome.CANCELLED, **more: Any) -> Result:
    return Result("cancel", "default", "*", outcome, **more)


def test_counts_of_all_topics_are_added_and_reasons_are_kept() -> None:
    results = [result(count=3, partition=1, offset=7), result(count=0, reason="x"), result(count=2, reason="x")]
    assert of_all_topics(results) == result(count=5, reason="x", partition=1, offset=7)


def test_two_reasons_are_both_told() -> None:
    assert of_all_topics([result(count=1, reason="x"), result(count=1, reason="y")]).reason == "x; y"


@pytest.mark.parametrize("failure", [Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND])
def test_a_failure_in_one_topic_is_the_answer(failure: Outcome) -> None:
    failed = result(failure, reason="no", field="id")
    assert of_all_topics([result(count=3), failed]) == failed


def test_the_result_of_one_topic_is_as_it_came() -> None:
    assert of_all_topics([result()]) == result()
