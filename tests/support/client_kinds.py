"""All kinds of clients with one interface: calls that are awaited, and streams that are iterated asynchronously."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import GeneratorType
from typing import Any, Self

from light_scheduler.client import BlockingSchedulerClient


class InThreads:
    """A blocking client whose calls run in threads, so that they can be awaited like the asyncio client's."""

    def __init__(self, client: BlockingSchedulerClient) -> None:
        self._client = client

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._client.__enter__)
        return self

    async def __aexit__(self, *failure: object) -> None:
        await asyncio.to_thread(self._client.__exit__, *failure)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not callable(method):
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            if name in ("cron", "every", "job_of"):  # nothing is sent
                return method(*arguments, **options)
            if name in ("watch", "schedule_each", "list", "history_of", "list_dead_letters"):
                return _streamed(method(*arguments, **options))
            return asyncio.to_thread(method, *arguments, **options)

        return call


_END = object()


async def _streamed(each: Iterator[Any]) -> AsyncIterator[Any]:
    try:
        while (one := await asyncio.to_thread(next, each, _END)) is not _END:
            yield one
    finally:
        if isinstance(each, GeneratorType):
            await asyncio.to_thread(each.close)
