"""Queries a worker over HTTP from asyncio code. It uses its own threads, so that the application cannot use them up."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from light_scheduler.errors import ClientError

from . import worker_api
from .questions import Question
from .worker_api import TooManyRequests, WorkerApi

T = TypeVar("T", bound=msgspec.Struct)

MOST_THREADS = 8


class WorkerThreads:
    """Threads that query a worker. They exist from the first query until `close`."""

    def __init__(self, api: WorkerApi) -> None:
        self._api = api
        self._threads: ThreadPoolExecutor | None = None

    async def asked(self, question: Question[T]) -> T | None:
        """Same as `WorkerApi.asked`. Raises ClientError if `close` comes before a thread is free."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="light-scheduler http")
        threads = self._threads
        for _ in range(worker_api.MOST_RETRIES):
            try:
                return await self._asked_once(question, threads)
            except TooManyRequests:
                await asyncio.sleep(worker_api.RETRY_AFTER_S)
        return await self._asked_once(question, threads)

    def close(self) -> None:
        """Ask the threads to end, each after its current query."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    async def _asked_once(self, question: Question[T], threads: ThreadPoolExecutor) -> T | None:
        if threads is not self._threads:
            raise ClientError("the client was closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, self._api.asked_once, question)
        except asyncio.CancelledError:
            if threads is self._threads or _is_cancelled():
                raise
            raise ClientError("the client was closed") from None


def _is_cancelled() -> bool:
    """Return whether the caller was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
