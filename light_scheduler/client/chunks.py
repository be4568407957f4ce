"""Many requests, a chunk at a time: what is held in memory does not grow with their number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from light_scheduler.errors import InvalidCommand

from .options import Requests, ScheduleRequest

MOST_REQUESTS = 5_000
MOST_BYTES = 16 * 1024 * 1024
"""Of a chunk: how many requests, and how much payload. The last request may go beyond that."""


Prepare = Callable[[ScheduleRequest], ScheduleRequest]


def _as_is(request: ScheduleRequest) -> ScheduleRequest:
    return request


class _Chunk:
    """The requests of a chunk so far."""

    def __init__(self) -> None:
        self._requests: list[ScheduleRequest] = []
        self._bytes = 0

    def add(self, request: ScheduleRequest) -> bool:
        """Add a request; return whether there is no room for more."""
        self._requests.append(request)
        payload = request.get("payload")
        self._bytes += len(payload) if isinstance(payload, bytes) else 0
        return len(self._requests) >= MOST_REQUESTS or self._bytes >= MOST_BYTES

    def taken(self) -> list[ScheduleRequest]:
        """Return what there is, and begin the next chunk."""
        taken, self._requests, self._bytes = self._requests, [], 0
        return taken


def chunks(requests: Iterable[ScheduleRequest], prepared: Prepare = _as_is) -> Iterator[list[ScheduleRequest]]:
    """Yield requests in lists, in their order, each as `prepared` returns it."""
    chunk = _Chunk()
    for request in requests:
        if chunk.add(prepared(request)):
            yield chunk.taken()
    if rest := chunk.taken():
        yield rest


async def async_chunks(requests: Requests, prepared: Prepare = _as_is) -> AsyncIterator[list[ScheduleRequest]]:
    """Yield requests in lists, in their order, each as `prepared` returns it."""
    if isinstance(requests, Iterable):
        for chunk in chunks(requests, prepared):
            yield chunk
        return
    open_chunk = _Chunk()
    async for request in requests:
        if open_chunk.add(prepared(request)):
            yield open_chunk.taken()
    if rest := open_chunk.taken():
        yield rest


def of_request(number: int, error: InvalidCommand) -> InvalidCommand:
    """Return an error that says which of many requests it is about; `number` counts from 1."""
    return InvalidCommand(error.field, f"{error.reason} (request {number})")
