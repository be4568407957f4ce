"""Splits many requests into chunks, so that memory does not grow with their number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from light_scheduler.errors import InvalidCommand

from .options import Requests, ScheduleRequest

MOST_REQUESTS = 5_000
MOST_BYTES = 16 * 1024 * 1024
"""Limits of a chunk: number of requests, and bytes of payload. The last request may exceed the limit of bytes."""


Prepare = Callable[[ScheduleRequest], ScheduleRequest]


def _as_is(request: ScheduleRequest) -> ScheduleRequest:
    return request


class _Chunk:
    """The requests collected so far."""

    def __init__(self) -> None:
        self._requests: list[ScheduleRequest] = []
        self._bytes = 0

    def add(self, request: ScheduleRequest) -> bool:
        """Add a request. Return whether the chunk is full."""
        self._requests.append(request)
        payload = request.get("payload")
        self._bytes += len(payload) if isinstance(payload, bytes) else 0
        return len(self._requests) >= MOST_REQUESTS or self._bytes >= MOST_BYTES

    def taken(self) -> list[ScheduleRequest]:
        """Return the collected requests, and begin the next chunk."""
        taken, self._requests, self._bytes = self._requests, [], 0
        return taken


def chunks(requests: Iterable[ScheduleRequest], prepared: Prepare = _as_is) -> Iterator[list[ScheduleRequest]]:
    """Yield requests in lists, in order, each transformed by `prepared`."""
    chunk = _Chunk()
    for request in requests:
        if chunk.add(prepared(request)):
            yield chunk.taken()
    if rest := chunk.taken():
        yield rest


async def async_chunks(requests: Requests, prepared: Prepare = _as_is) -> AsyncIterator[list[ScheduleRequest]]:
    """Yield requests in lists, in order, each transformed by `prepared`."""
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
    """Return the error with the number of its request, which counts from 1."""
    return InvalidCommand(error.field, f"{error.reason} (request {number})")
