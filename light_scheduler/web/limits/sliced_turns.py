"""Turns of requests that work slice by slice, one at a time. Short requests run between the slices of a long one.

    at work     one request; it keeps the turn until it ends
    between     after `LONG_SLICES` of its slices, a short request of another holder gets one, `MOST_GIVEN_S` in all
    short       a request that has had fewer than `SHORT_SLICES` slices; with more, it waits for the turn

So a short request waits for a few slices of others, however much work these have left, and the request at work takes
little longer than alone. Holders take turns, both for the turn and for slices in between; requests of one holder go in
order of arrival. A request that waits between two slices counts for its holder like one that has not begun.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter

from .shares import HOLDER, Holder, Shares
from .slices import BETWEEN_SLICES
from .turns import REFUSE_AFTER_S, refusal

LONG_SLICES = 3
SHORT_SLICES = 8
MOST_GIVEN_S = 0.25
"""How long a request at work waits for others in total, except for their last slice. This bounds its duration."""


@dataclass(eq=False)
class _Request:
    """A request. `slices` is the number it has had, `in_a_row` the number since another request had one.

    `number` gives the order of arrival, `given_s` how long it has waited for others while at work. `resumed` is pending
    while it waits for a slice.
    """

    number: int
    holder: Holder
    patience_s: float
    has_place: bool = False
    slices: int = 0
    in_a_row: int = 0
    given_s: float = 0.0
    resumed: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def is_short(self) -> bool:
        return self.slices < SHORT_SLICES

    @property
    def is_gone(self) -> bool:
        """Whether the request was cancelled or timed out, and has not been removed yet."""
        return self.resumed.cancelled()


class SlicedTurns:
    """One request at work, and up to `waiting` more, of which each holder has a share. Each waits for up to
    `patience_s` in total. `what` names the requests in the error."""

    def __init__(self, what: str, *, waiting: int, patience_s: float) -> None:
        self._what = what
        self._patience_s = patience_s
        self._places = Shares(waiting)
        self._numbers = count()
        self._waiting: dict[Holder, list[_Request]] = {}  # the holder served last comes last
        self._at_work: _Request | None = None
        self._in_slice: _Request | None = None  # the one at work, or one with a slice in between

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn or for slices in between, and hold it: `LoopTime` gives others their slices.

        Raises ProblemError (429) if too many requests are waiting, or after `patience_s`; so does `LoopTime.rest`.
        """
        request = _Request(next(self._numbers), HOLDER.get(), self._patience_s)
        if self._in_slice is None:
            self._at_work = self._in_slice = request
        else:
            await self._begin(request)
        before = BETWEEN_SLICES.get()
        BETWEEN_SLICES.set(lambda: self._between(request))
        try:
            yield
        finally:
            BETWEEN_SLICES.set(before)
            self._end(request)

    async def _begin(self, request: _Request) -> None:
        if not self._places.has_room(request.holder):
            await asyncio.sleep(REFUSE_AFTER_S)
            raise refusal(self._what)
        self._places.take(request.holder)
        request.has_place = True
        self._line_up(request)
        try:
            await self._resumption(request)
        except BaseException:
            self._end(request)
            raise

    async def _between(self, request: _Request) -> None:
        """Give others their slices between two slices of a request."""
        request.slices += 1
        request.in_a_row += 1
        if request is not self._at_work:
            self._pause(request)
            self._line_up(request)
            self._go_on()
            await self._resumption(request)
        elif self._gives(request) and (short := self._next_short(request.holder)) is not None:
            began = asyncio.get_running_loop().time()
            self._pause(request)
            self._resume(short)
            await request.resumed
            request.given_s += asyncio.get_running_loop().time() - began

    @staticmethod
    def _gives(request: _Request) -> bool:
        return request.in_a_row >= LONG_SLICES and request.given_s < MOST_GIVEN_S

    def _line_up(self, request: _Request) -> None:
        insort(self._waiting.setdefault(request.holder, []), request, key=attrgetter("number"))

    async def _resumption(self, request: _Request) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(request.patience_s):
                await request.resumed
        except TimeoutError:
            raise refusal(self._what) from None
        request.patience_s -= loop.time() - began

    def _end(self, request: _Request) -> None:
        if request.has_place:
            self._places.give_back(request.holder)
        self._take_out(request)
        if self._at_work is request:
            self._at_work = None
        if self._in_slice is request:
            self._go_on()

    def _pause(self, request: _Request) -> None:
        request.in_a_row = 0
        request.resumed = asyncio.get_running_loop().create_future()

    def _go_on(self) -> None:
        """Give the free slice to the request at work, or the turn to the next request."""
        self._in_slice = None
        if self._at_work is None or self._at_work.is_gone:
            self._at_work = next(self._in_turn(), None)
            if self._at_work is not None and self._at_work.has_place:
                self._places.give_back(self._at_work.holder)
                self._at_work.has_place = False
        if self._at_work is not None:
            self._resume(self._at_work)

    def _resume(self, request: _Request) -> None:
        self._take_out(request)
        if (others := self._waiting.pop(request.holder, None)) is not None:
            self._waiting[request.holder] = others
        self._in_slice = request
        request.resumed.set_result(None)

    def _next_short(self, holder: Holder) -> _Request | None:
        return next((each for each in self._in_turn() if each.is_short and each.holder != holder), None)

    def _in_turn(self) -> Iterator[_Request]:
        return (each for queue in self._waiting.values() for each in queue if not each.is_gone)

    def _take_out(self, request: _Request) -> None:
        waiting = self._waiting.get(request.holder, [])
        if request in waiting:
            waiting.remove(request)
            if not waiting:
                del self._waiting[request.holder]
