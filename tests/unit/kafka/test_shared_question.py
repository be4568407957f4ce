"""Questions that several ask at the same time are put once."""

from __future__ import annotations

import asyncio

import pytest

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.shared_question import SharedQuestion


class Broker:
    """Answers questions one by one, when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: asyncio.Queue[int | Exception] = asyncio.Queue()
        self.shared = SharedQuestion(self._ask)

    async def _ask(self, subject: str) -> int:
        self.asked.append(subject)
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(self, count: int, subject: str = "a") -> list[asyncio.Task[int]]:
        tasks = [asyncio.create_task(self.shared(subject)) for _ in range(count)]
        for _ in range(5):
            await asyncio.sleep(0)
        return tasks


@pytest.fixture
async def broker() -> Broker:
    return Broker()


async def test_those_who_ask_at_the_same_time_share_one_question(broker: Broker) -> None:
    asking = await broker.ask(12)
    broker.answers.put_nowait(1)
    assert await asyncio.gather(*asking) == [1] * 12
    assert broker.asked == ["a"]


async def test_nobody_gets_an_answer_to_a_question_that_was_put_before_they_asked(broker: Broker) -> None:
    first = await broker.ask(1)
    later = await broker.ask(3)
    assert broker.asked == ["a"]
    broker.answers.put_nowait(1)
    broker.answers.put_nowait(2)
    assert await asyncio.gather(*first, *later) == [1, 2, 2, 2]
    last = await broker.ask(1)
    broker.answers.put_nowait(3)
    assert await asyncio.gather(*last) == [3]
    assert broker.asked == ["a"] * 3


async def test_questions_about_others_do_not_wait(broker: Broker) -> None:
    await broker.ask(1, "a")
    await broker.ask(1, "b")
    assert broker.asked == ["a", "b"]
    for answer in (1, 2):
        broker.answers.put_nowait(answer)


async def test_a_failure_is_that_of_all_who_share_the_question_and_not_of_later_ones(broker: Broker) -> None:
    asking = await broker.ask(2)
    broker.answers.put_nowait(BrokerError("away"))
    assert [type(found) for found in await asyncio.gather(*asking, return_exceptions=True)] == [BrokerError] * 2
    later = await broker.ask(1)
    broker.answers.put_nowait(1)
    assert await asyncio.gather(*later) == [1]


async def test_who_gives_up_takes_no_answer_from_others(broker: Broker) -> None:
    first, second = await broker.ask(2)
    first.cancel()
    broker.answers.put_nowait(1)
    assert await second == 1
    assert first.cancelled()


@pytest.mark.parametrize("under_way", [True, False])
async def test_a_question_ends_when_nobody_waits_for_the_answer_any_more(broker: Broker, under_way: bool) -> None:
    before = await broker.ask(0 if under_way else 1)
    asking = await broker.ask(2)
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    for number, task in enumerate([*before, *await broker.ask(1)]):
        broker.answers.put_nowait(number)
        assert await task == number
    assert len(broker.asked) == 2
    assert len(asyncio.all_tasks()) == 1


async def test_who_asks_as_the_last_one_gives_up_is_not_given_up_with_it(broker: Broker) -> None:
    before = await broker.ask(1)
    (gone,) = await broker.ask(1)
    gone.cancel()
    asking = await broker.ask(1)
    for number, task in enumerate([*before, *asking]):
        broker.answers.put_nowait(number)
        assert await task == number
    assert gone.cancelled()


async def test_a_failure_that_nobody_waits_for_any_more_is_not_told_of(broker: Broker) -> None:
    (asking,) = await broker.ask(1)
    broker.answers.put_nowait(BrokerError("away"))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
