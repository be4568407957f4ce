"""Answers that are shared by all who ask the same within a short time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from .problems import ProblemError
from .shares import HOLDER, Holder

MOST_KEPT = 100
"""Answers that are given again."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class _Shared(Generic[Answer]):
    """An answer that was begun for a holder at an instant of the loop."""

    def __init__(self, begun_at: float, holder: Holder, making: asyncio.Task[Answer]) -> None:
        self.begun_at = begun_at
        self.holder = holder
        self.making = making


class SharedAnswers(Generic[Key, Answer]):
    """Answers by what is asked for. One that fails is shared, too: who asks next, asks anew after the same time.

    A refusal (429) is for the holder whose request it was made for: that one has its share of the turns. Any other
    holder has an answer made in its own name.
    """

    def __init__(self) -> None:
        self._answers: dict[Key, _Shared[Answer]] = {}

    async def answer(self, key: Key, fresh_s: float, make: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return an answer that was begun less than `fresh_s` ago, or make one. It is made even if nobody waits."""
        while True:
            shared = self._fresh(key, fresh_s, make)
            try:
                return await asyncio.shield(shared.making)
            except ProblemError as error:
                if error.problem.status != HTTPStatus.TOO_MANY_REQUESTS or shared.holder == HOLDER.get():
                    raise
            if self._answers.get(key) is shared:
                del self._answers[key]

    def _fresh(self, key: Key, fresh_s: float, make: Callable[[], Coroutine[Any, Any, Answer]]) -> _Shared[Answer]:
        now = asyncio.get_running_loop().time()
        known = self._answers.get(key)
        if known is None or now >= known.begun_at + fresh_s:
            self._answers = {each: held for each, held in self._answers.items() if now < held.begun_at + fresh_s}
            while len(self._answers) >= MOST_KEPT:
                del self._answers[next(iter(self._answers))]
            known = self._answers[key] = _Shared(now, HOLDER.get(), asyncio.create_task(make()))
        return known
