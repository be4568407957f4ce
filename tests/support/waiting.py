"""Waiting for what others do, instead of a sleep: `eventually`; without an event loop, `eventually_blocking`."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(
    condition: Callable[[], Awaitable[T | None]], *, within: float = ..., every: float = ..., what: str = ...
) -> T: ...
@overload
async def eventually(
    condition: Callable[[], T | None], *, within: float = ..., every: float = ..., what: str = ...
) -> T: ...
async def eventually(
    condition: Callable[[], object], *, within: float = 60.0, every: float = 0.01, what: str = "it"
) -> object:
    """Ask every so often (s) until the condition returns something true, and return that.

    The condition may be a coroutine function. What it raises ends the wait. Raises TimeoutError after `within` s, with
    what came last.
    """
    found: object = None
    try:
        async with asyncio.timeout(within):
            while True:
                found = condition()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(every)
    except TimeoutError as error:  # whose cause tells where the last question hung
        raise TimeoutError(_told(what, within, found)) from error


def eventually_blocking(
    condition: Callable[[], T | None], *, within: float = 60.0, every: float = 0.01, what: str = "it"
) -> T:
    """Do as `eventually`, and block this thread meanwhile."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() >= deadline:
            raise TimeoutError(_told(what, within, found))
        time.sleep(every)
    return found


def _told(what: str, within: float, found: object) -> str:
    return f"{what}: not within {within:g} s; the last answer was {found!r}"
