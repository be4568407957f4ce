"""Commands of idempotency keys that are acknowledged late: when their claims are renewed, and what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.waiting import eventually

from light_scheduler.client import Receipt
from light_scheduler.client.errors import NotAcknowledged
from light_scheduler.errors import BrokerError
from light_scheduler.model import Outcome, Result
from light_scheduler.web.commands.errors import TooManyWaitingError
from light_scheduler.web.commands.idempotency import late_commands
from light_scheduler.web.commands.idempotency.claims import Claim
from light_scheduler.web.commands.idempotency.late_commands import LateCommand, LateCommands
from light_scheduler.wire.idempotency import ClaimMade, CommandSent

RENEWAL = ("shop", "hash:2", ClaimMade("print", "a", "shop"))
MARK = ("shop", "hash:1", CommandSent(3, 41))


class Topic:
    """The idempotency topic. `failures` are raised for the next records."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.tried = 0
        self.written: list[tuple[str, str, ClaimMade | CommandSent]] = []

    async def write(self, tenant: str, request_id: str, event: ClaimMade | CommandSent) -> None:
        self.tried += 1
        if self.failures:
            raise self.failures.pop(0)
        self.written.append((tenant, request_id, event))


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
async def late(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LateCommand]:
    """A command that is followed, of a claim that the request `hash:2` took over."""
    monkeypatch.setattr(late_commands, "RENEW_S", 0.001)
    acknowledged: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    late = LateCommand("shop", "hash:2", Claim("hash:1", "hash:2", "print", "a", "shop", 0), acknowledged)
    following = LateCommands(topic.write)
    following.follow(late)
    yield late
    await following.close()


def is_over() -> bool:
    return all(task.get_name() != "light-scheduler late command" for task in asyncio.all_tasks())


async def test_its_claim_is_renewed_until_it_is_acknowledged_and_then_it_is_marked(
    topic: Topic, late: LateCommand
) -> None:
    await eventually(lambda: len(topic.written) > 3)
    late.acknowledged.set_result(Receipt("shop", "a", 3, 41))
    await eventually(lambda: topic.written[-1] == MARK)
    assert all(written == RENEWAL for written in topic.written[:-1])


@pytest.mark.parametrize("failure", [BrokerError("away"), TooManyWaitingError()])
async def test_a_renewal_and_a_mark_that_fail_are_tried_again(
    topic: Topic, late: LateCommand, failure: Exception
) -> None:
    topic.failures = [failure]
    await eventually(lambda: RENEWAL in topic.written)
    topic.failures = [failure] * 2
    late.acknowledged.set_result(Receipt("shop", "a", 3, 41))
    await eventually(lambda: MARK in topic.written)
    assert topic.written.count(MARK) == 1


async def test_the_next_renewal_waits_for_the_one_before(topic: Topic, late: LateCommand) -> None:
    renewed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    topic.failures = [NotAcknowledged("away", renewed)]
    await eventually(lambda: topic.tried == 1)
    assert await asyncio.wait([late.acknowledged], timeout=0.05) == (set(), {late.acknowledged})
    assert topic.tried == 1
    renewed.set_result(Receipt("shop", "hash:2", 0, 7))
    await eventually(lambda: RENEWAL in topic.written)


async def test_a_mark_that_the_producer_still_sends_is_not_written_twice(topic: Topic, late: LateCommand) -> None:
    topic.failures = [NotAcknowledged("away", asyncio.get_running_loop().create_future())]
    late.acknowledged.set_result(Receipt("shop", "a", 3, 41))
    await eventually(is_over)
    assert (topic.tried, topic.written) == (1, [])


async def test_a_command_whose_result_is_there_needs_no_mark(topic: Topic, late: LateCommand) -> None:
    late.claim.result = Result("schedule", "shop", "a", Outcome.SCHEDULED, 1)
    late.acknowledged.set_result(Receipt("shop", "a", 3, 41))
    await eventually(is_over)
    assert topic.tried == 0


async def test_a_claim_whose_result_is_there_is_not_renewed(topic: Topic, late: LateCommand) -> None:
    late.claim.result = Result("schedule", "shop", "a", Outcome.REJECTED)
    await eventually(is_over)
    assert topic.tried == 0
