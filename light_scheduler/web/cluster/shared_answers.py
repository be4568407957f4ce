"""Shares an answer among all requests for the same thing within a short time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits.shares import HOLDER, Holder

MOST_KEPT = 100
"""Maximum number of answers kept for reuse."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class _Attempt(NamedTuple, Generic[Answer]):
    """An answer that was begun at an instant (the loop's time)."""

    begun_at: float
    making: asyncio.Task[Answer]


class _Shared(Generic[Answer]):
    """The attempts at one answer, by the holders that they are made for. The first one that is not refused counts."""

    def __init__(self) -> None:
        self._attempts: dict[Holder, _Attempt[Answer]] = {}

    def is_fresh(self, since: float) -> bool:
        """Return whether anything was begun after an instant; if an attempt counts, whether that one was."""
        begun = [attempt.begun_at for attempt in self._attempts.values()]
        counting = [attempt.begun_at for attempt in self._attempts.values() if not _is_refused(attempt.making)]
        return max(begun, default=since) > since and min(counting, default=since + 1) > since

    def of(self, holder: Holder, since: float) -> asyncio.Task[Answer] | None:
        """Return a holder's attempt, if it was begun after an instant."""
        attempt = self._attempts.get(holder)
        return None if attempt is None or attempt.begun_at <= since else attempt.making

    def begin(self, holder: Holder, making: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        """Make the answer for a holder, which is that of the current task."""
        attempt = _Attempt(asyncio.get_running_loop().time(), asyncio.create_task(making))
        attempt.making.add_done_callback(self._end_others)
        self._attempts[holder] = attempt
        return attempt.making

    def running(self) -> list[asyncio.Task[Answer]]:
        """Return the attempts that have not ended."""
        return [attempt.making for attempt in self._attempts.values() if not attempt.making.done()]

    def settled(self) -> asyncio.Task[Answer] | None:
        """Return the attempt that counts, if it has ended."""
        return next((attempt.making for attempt in self._attempts.values() if _is_settled(attempt.making)), None)

    def _end_others(self, making: asyncio.Task[Answer]) -> None:
        if _is_settled(making):
            for attempt in self._attempts.values():
                attempt.making.cancel()


class SharedAnswers(Generic[Key, Answer]):
    """Answers by key. A failure is shared, too: after `fresh_s`, the next request tries again.

    A refusal (429) applies only to the holder whose request it was made for, since that one has used up its share of
    the turns. For any other holder that waited for it, an answer is made in its own name, concurrently. So a request
    waits for at most one refusal of another holder. All share the first answer.
    """

    def __init__(self) -> None:
        self._answers: dict[Key, _Shared[Answer]] = {}

    async def answer(self, key: Key, fresh_s: float, make: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return an answer that was begun less than `fresh_s` ago, or make one. It is completed even if its requests
        are cancelled."""
        holder, since = HOLDER.get(), asyncio.get_running_loop().time() - fresh_s
        shared = self._fresh(key, since)
        own, has_waited = None, False
        while (settled := shared.settled()) is None:
            own = own or shared.of(holder, since)
            if own is None and (has_waited or not shared.running()):
                own = shared.begin(holder, make())
            if running := shared.running():
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                has_waited = True
            if own is not None and own.done() and shared.settled() is None:
                return own.result()  # which raises its refusal
        return settled.result()

    def _fresh(self, key: Key, since: float) -> _Shared[Answer]:
        known = self._answers.get(key)
        if known is None or not known.is_fresh(since):
            self._answers = {each: held for each, held in self._answers.items() if held.is_fresh(since)}
            while len(self._answers) >= MOST_KEPT:
                del self._answers[next(iter(self._answers))]
            known = self._answers[key] = _Shared()
        return known


def _is_settled(making: asyncio.Task[Any]) -> bool:
    """Return whether an attempt has ended with a result for all requests."""
    return making.done() and not making.cancelled() and not _is_refused(making)


def _is_refused(making: asyncio.Task[Any]) -> bool:
    error = making.exception() if making.done() and not making.cancelled() else None
    return isinstance(error, ProblemError) and error.problem.status == HTTPStatus.TOO_MANY_REQUESTS
