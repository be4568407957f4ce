"""Closing clients of Kafka: no connection stays open, whatever happens to whoever closes one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.kafka.connection import stop_consumer, stop_producer
from light_scheduler.kafka.log_reader import LogReader


class SlowClient:
    """A consumer, or a producer, whose end takes until it may end."""

    def __init__(self) -> None:
        self._fetcher = None
        self._client = self.client = SimpleNamespace(close=self.stop)
        self.is_stopping, self.may_stop = asyncio.Event(), asyncio.Event()
        self.is_stopped = False

    async def flush(self) -> None:
        pass

    async def stop(self) -> None:
        self.is_stopping.set()
        await self.may_stop.wait()
        self.is_stopped = True


async def close_a_reader(client: Any) -> None:
    reader = LogReader("broker:9092")
    unused, reader._consumer = reader._consumer, client
    await unused.stop()
    await reader.close()


@pytest.mark.parametrize("close", [stop_consumer, stop_producer, close_a_reader])
async def test_a_close_that_is_cancelled_comes_to_its_end_before_the_cancellation_is_let_out(
    close: Callable[[Any], Awaitable[None]],
) -> None:
    client = SlowClient()
    closing = asyncio.ensure_future(close(client))
    await client.is_stopping.wait()
    closing.cancel()
    await asyncio.sleep(0)
    assert not closing.done()
    client.may_stop.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert client.is_stopped
