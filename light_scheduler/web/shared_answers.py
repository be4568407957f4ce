"""Answers that are shared by all who ask the same within a short time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

MOST_KEPT = 100
"""Answers that are given again."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class SharedAnswers(Generic[Key, Answer]):
    """Answers by what is asked for. One that fails is shared, too: who asks next, asks anew after the same time."""

    def __init__(self) -> None:
        self._answers: dict[Key, tuple[float, asyncio.Task[Answer]]] = {}

    async def answer(self, key: Key, fresh_s: float, make: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return an answer that was begun less than `fresh_s` ago, or make one. It is made even if nobody waits."""
        now = asyncio.get_running_loop().time()
        known = self._answers.get(key)
        if known is None or now >= known[0] + fresh_s:
            self._answers = {each: held for each, held in self._answers.items() if now < held[0] + fresh_s}
            while len(self._answers) >= MOST_KEPT:
                del self._answers[next(iter(self._answers))]
            known = self._answers[key] = (now, asyncio.create_task(make()))
        return await asyncio.shield(known[1])
