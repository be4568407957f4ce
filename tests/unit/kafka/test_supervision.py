"""How what works on a partition starts again and ends."""

from __future__ import annotations

import asyncio
import logging

import pytest
from support.waiting import eventually

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.supervision import Supervision
from light_scheduler.log_fields import current_fields

log = logging.getLogger(__name__)


class Worker:
    """Is told of errors that nothing recovers from."""

    def __init__(self) -> None:
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def fail(self, error: BaseException) -> None:
        self.failed.set_result(error)


async def test_work_is_tried_again_until_it_is_not_to_be(caplog: pytest.LogCaptureFixture) -> None:
    supervision, worker = Supervision("lane orders-0", log), Worker()
    tries: list[int] = []

    async def work() -> None:
        tries.append(len(tries))
        raise BrokerError("away")

    async def failed(error: Exception) -> bool:
        supervision.log_restart(error)
        return len(tries) < 3

    supervision.start(work, failed, worker.fail, None)
    assert await supervision.end()
    assert tries == []  # it was to end before it began

    again = Supervision("lane orders-0", log)
    again.start(work, failed, worker.fail, None)
    while len(tries) < 3:
        await asyncio.sleep(0)
    assert await again.end()
    assert caplog.messages == ["lane orders-0 starts again: BrokerError('away')"] * 3
    assert not worker.failed.done()


async def test_log_lines_of_the_work_have_its_fields() -> None:
    supervision, worker = Supervision("it", log, fields={"topic": "orders", "partition": 3}), Worker()
    found: list[object] = []

    async def work() -> None:
        found.append(current_fields())
        await supervision.pause(3_600)

    async def failed(_error: Exception) -> bool:
        return True

    supervision.start(work, failed, worker.fail, None)
    await eventually(lambda: found)
    assert found == [{"topic": "orders", "partition": 3}]
    assert current_fields() == {}
    assert await supervision.end()


def test_pauses_grow_to_a_bound_and_begin_anew_when_it_went_well() -> None:
    supervision = Supervision("it", log, 0.1, 0.5)
    assert [supervision.next_retry_s() for _ in range(4)] == [0.1, 0.2, 0.4, 0.5]
    supervision.went_well()
    assert [supervision.next_retry_s(0.3) for _ in range(3)] == [0.1, 0.2, 0.3]


async def test_what_cannot_be_recovered_from_ends_the_worker() -> None:
    supervision, worker = Supervision("it", log), Worker()

    async def work() -> None:
        raise BrokerError("away")

    async def failed(_error: Exception) -> bool:
        raise ValueError("a bug")

    supervision.start(work, failed, worker.fail, None)
    assert isinstance(await worker.failed, ValueError)


async def test_a_predecessor_is_waited_for() -> None:
    supervision, worker = Supervision("it", log), Worker()
    closed, begun = asyncio.Event(), asyncio.Event()

    async def closing() -> None:
        await closed.wait()

    async def work() -> None:
        begun.set()
        await supervision.pause(3_600)

    async def failed(_error: Exception) -> bool:
        return False

    supervision.start(work, failed, worker.fail, asyncio.create_task(closing()))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not begun.is_set()
    closed.set()
    await begun.wait()
    assert await supervision.end()


async def test_what_does_not_end_by_itself_is_cancelled() -> None:
    supervision, worker = Supervision("it", log), Worker()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def failed(_error: Exception) -> bool:
        return True

    supervision.start(work, failed, worker.fail, None)
    await begun.wait()
    assert not await supervision.end(0.01)
    assert not worker.failed.done()


async def test_a_partition_is_asked_for_until_it_is_ours() -> None:
    supervision = Supervision("it", log)
    answers = iter([False, True])

    async def confirmed() -> bool:
        return next(answers)

    await supervision.confirm(confirmed)
    assert next(answers, None) is None
