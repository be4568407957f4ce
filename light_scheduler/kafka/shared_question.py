"""Shares one request between callers that ask the same question at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedQuestion(Generic[T]):
    """Shares requests by subject. Each request starts after the call that it answers. Failures are shared too."""

    def __init__(self, ask: Callable[[str], Awaitable[T]]) -> None:
        self._ask = ask
        self._under_way: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}
        self._waiting: Counter[asyncio.Task[T]] = Counter()

    async def __call__(self, subject: str) -> T:
        """Return the answer. Raises the errors of `ask`."""
        task = self._next.get(subject)
        if task is None or task.done():
            task = asyncio.create_task(self._ask_next(subject, self._under_way.get(subject)))
            task.add_done_callback(partial(self._end, subject))
            self._next[subject] = task
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)  # other callers may wait for it
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                if self._next.get(subject) is task:  # later callers start a new request
                    del self._next[subject]
                task.cancel()

    async def _ask_next(self, subject: str, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait([before])
        self._under_way[subject] = self._next.pop(subject)
        return await self._ask(subject)

    def _end(self, subject: str, task: asyncio.Task[T]) -> None:
        for tasks in (self._under_way, self._next):
            if tasks.get(subject) is task:
                del tasks[subject]
        if not task.cancelled():
            task.exception()  # all callers may have been cancelled
