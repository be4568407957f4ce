"""A bulk command over HTTP goes to several commands topics: no answer invites to repeat it where it was carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from light_scheduler.client import Receipt
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.model import Command, Outcome, Result

CANCEL = "/api/v1/tenants/default/schedules:cancel"
TRIGGER = "/api/v1/tenants/default/schedules:trigger"
URN = "urn:light-scheduler:problem:"
ALL = {"id": "*"}
FULL = "quota.bulk_commands"
LATE = ResultTimeout("no answer about default/*", Receipt("default", "*", 3, 17))
AWAY = BrokerError("cannot send commands to b: gone")


def answered(outcome: Outcome, **more: Any) -> Callable[[Command], Result]:
    return lambda command: Result(command.name, "default", "*", outcome, **more)


DONE = answered(Outcome.CANCELLED, count=3, partition=1, offset=7)
OVER = answered(Outcome.REJECTED, reason="1,000 are at work", field=FULL)
WRONG = answered(Outcome.REJECTED, reason="is too large", field="payload")
NONE = answered(Outcome.NOT_FOUND, reason="no schedule with this id is pending")


@pytest.fixture
def commands_topics() -> str:
    return "a,b:json,c:etf1"


@pytest.fixture
def asked(workers: Any) -> Any:
    """Return a function that sends a bulk command, which topics answer so: (status, problem or result, headers)."""

    async def asked(a: Any, b: Any, path: str = CANCEL, **headers: str) -> tuple[int, Any, Any]:
        workers[0].commands.answers = {"a": a, "b": b}
        async with workers[0].client.post(path, json=ALL, headers=headers) as response:
            return response.status, await response.json(content_type=None), response.headers

    return asked


async def test_the_counts_of_all_topics_are_added(asked: Any) -> None:
    status, result, _ = await asked(DONE, DONE)
    assert (status, result["outcome"], result["count"]) == (200, "cancelled", 6)


@pytest.mark.parametrize("refusal", [OVER, WRONG, NONE, answered(Outcome.CONFLICT, reason="no")])
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_refusal_in_one_topic_is_no_invitation_to_repeat_it_in_the_others(
    asked: Any, refusal: Any, *, is_first: bool
) -> None:
    status, problem, headers = await asked(*((refusal, DONE) if is_first else (DONE, refusal)))
    refusing, doing = ("a", "b") if is_first else ("b", "a")
    assert (status, problem["type"]) == (409, f"{URN}partly-carried-out")
    assert "Retry-After" not in headers
    assert problem["detail"].startswith(f"It was carried out in {doing}. {refusing} refused it: ")
    assert problem["detail"].endswith("Do not send the request again: it would be carried out once more where it was.")
    of = {each["topic"]: each["result"] for each in problem["topics"]}
    assert (list(of), of[doing]["outcome"], of[doing]["count"]) == (["a", "b"], "cancelled", 3)
    assert of[refusing]["outcome"] in ("rejected", "not_found", "conflict")


async def test_a_command_may_be_repeated_if_no_topic_has_room_for_it_just_now(asked: Any) -> None:
    status, problem, headers = await asked(OVER, OVER)
    assert (status, problem["type"], problem["parameter"]) == (429, f"{URN}quota-exceeded", FULL)
    assert headers["Retry-After"] == "1"
    assert problem["detail"] == (
        f"No topic carried the command out. a refused it: {FULL}: 1,000 are at work. "
        f"b refused it: {FULL}: 1,000 are at work."
    )
    assert [each["result"]["outcome"] for each in problem["topics"]] == ["rejected", "rejected"]


@pytest.mark.parametrize(
    ("refusal", "status", "type", "reason"),
    [
        (WRONG, 400, "command-rejected", "payload: is too large"),
        (NONE, 404, "not-found", "no schedule with this id is pending"),
    ],
)
async def test_a_refusal_that_does_not_pass_is_the_answer_and_hides_no_other(
    asked: Any, refusal: Any, status: int, type: str, reason: str
) -> None:
    for answers in ((OVER, refusal), (refusal, OVER)):
        found, problem, headers = await asked(*answers)
        assert (found, problem["type"], "Retry-After" in headers) == (status, URN + type, False)
        assert f"{FULL}: 1,000 are at work" in problem["detail"]
        assert reason in problem["detail"]
        assert len(problem["topics"]) == 2


@pytest.mark.parametrize("path", [CANCEL, f"{CANCEL}?wait=false"])
async def test_a_topic_that_cannot_be_written_to_is_no_invitation_either(asked: Any, path: str) -> None:
    status, problem, headers = await asked(DONE, AWAY, path)
    assert (status, problem["type"]) == (409, f"{URN}partly-carried-out")
    assert "Retry-After" not in headers
    assert problem["topics"][1] == {"topic": "b", "reason": "cannot send commands to b: gone"}
    assert set(problem["topics"][0]) == {"topic", "sent" if "wait" in path else "result"}
    both, problem, headers = await asked(AWAY, AWAY, path)
    assert (both, problem["type"], headers["Retry-After"]) == (503, f"{URN}unavailable", "1")
    assert len(problem["topics"]) == 2


async def test_a_topic_that_does_not_answer_in_time_will_carry_it_out(asked: Any) -> None:
    for other in (DONE, LATE):
        status, problem, headers = await asked(other, LATE, TRIGGER)
        assert (status, problem["type"], problem["sent"]["offset"]) == (504, f"{URN}no-answer", 17)
        assert "Retry-After" not in headers
        assert problem["topics"][1]["sent"]["offset"] == 17
    for undone in (AWAY, OVER):
        status, problem, headers = await asked(undone, LATE)
        assert (status, problem["type"], "Retry-After" in headers) == (409, f"{URN}partly-carried-out", False)
        assert "no answer about default/*" in problem["detail"]
    status, receipt, _ = await asked(DONE, LATE, Prefer="wait=5")
    assert (status, receipt["offset"]) == (202, 17)


async def test_a_repetition_that_a_topic_would_refuse_again_is_not_advised(asked: Any) -> None:
    for refusal, may_help in ((OVER, True), (WRONG, False)):
        status, _, headers = await asked(refusal, AWAY)
        assert (status, "Retry-After" in headers) == (503, may_help)


async def test_a_command_that_is_too_large_for_a_topic_is_invalid_and_may_be_in_another_one(asked: Any) -> None:
    too_large = InvalidCommand("payload", "is too large")
    for other, said in (
        (AWAY, "The command may or may not have been sent. a: cannot send commands to b: gone."),
        (too_large, "No topic carried the command out. a: payload: is too large."),
    ):
        status, problem, headers = await asked(other, too_large)
        assert (status, problem["type"], problem["parameter"]) == (400, f"{URN}invalid-command", "payload")
        assert problem["detail"] == f"{said} b: payload: is too large."
        assert problem["topics"] == [{"topic": "a", "reason": str(other)}, {"topic": "b", "reason": str(too_large)}]
        assert "Retry-After" not in headers
