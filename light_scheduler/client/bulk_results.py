"""The results of a bulk command that went to several commands topics, as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET

from light_scheduler.model import FAILURES, Result

T = TypeVar("T")


async def all_done(doing: Iterable[Awaitable[T]]) -> list[T]:
    """Return the result of each. Raises the first error, once all have ended: none is broken off for another."""
    done = await asyncio.gather(*doing, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return cast(list[T], done)


def of_all_topics(results: Mapping[str, Result]) -> Result:
    """Return the first failure if any topic had one, else the first result. Its count is that of all topics.

    `results` are by topic. With several topics, a reason names its topic, and a failure says where the command was
    carried out all the same.
    """
    if len(results) == 1:
        return next(iter(results.values()))
    failed = [result for result in results.values() if result.outcome in FAILURES]
    applied = {topic: result for topic, result in results.items() if result.outcome not in FAILURES}
    reasons = [f"{topic}: {result.reason}" for topic, result in results.items() if result.reason is not None]
    if failed and applied:
        reasons.append(f"it was carried out in {', '.join(applied)}")
    counts = [result.count for result in applied.values() if result.count is not UNSET]
    changes: dict[str, Any] = {"count": sum(counts)} if counts else {}
    first = (failed or [*results.values()])[0]
    return msgspec.structs.replace(first, reason="; ".join(reasons) or None, **changes)
