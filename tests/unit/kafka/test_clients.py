"""Which cancellations end a task, and which are errors like others."""

from __future__ import annotations

import asyncio

import pytest

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.clients import no_stray_cancellation


async def test_a_cancellation_that_the_task_was_not_sent_is_an_error() -> None:
    inner = asyncio.get_running_loop().create_future()
    inner.cancel()
    with pytest.raises(BrokerError, match="cancelled the request"), no_stray_cancellation():
        await inner


async def test_a_cancellation_of_the_task_itself_ends_it() -> None:
    entered = asyncio.Event()

    async def work() -> None:
        with no_stray_cancellation():
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_deadline_passes_as_what_it_is() -> None:
    with pytest.raises(TimeoutError), no_stray_cancellation():
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
