"""Many requests, a chunk at a time: what is held in memory does not grow with their number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

from .options import Requests, ScheduleRequest

MOST_REQUESTS = 5_000
MOST_BYTES = 16 * 1024 * 1024
"""Of a chunk: how many requests, and how much payload. The last request may go beyond that."""


class _Chunk:
    """The requests of a chunk so far."""

    def __init__(self) -> None:
        self._requests: list[ScheduleRequest] = []
        self._bytes = 0

    def add(self, request: ScheduleRequest) -> bool:
        """Add a request; tell whether there is no room for more."""
        self._requests.append(request)
        payload = request.get("payload")
        self._bytes += len(payload) if isinstance(payload, bytes) else 0
        return len(self._requests) >= MOST_REQUESTS or self._bytes >= MOST_BYTES

    def taken(self) -> list[ScheduleRequest]:
        """Return what there is, and begin the next chunk."""
        taken, self._requests, self._bytes = self._requests, [], 0
        return taken


def chunks(requests: Iterable[ScheduleRequest]) -> Iterator[list[ScheduleRequest]]:
    """Yield requests in lists, in their order."""
    chunk = _Chunk()
    for request in requests:
        if chunk.add(request):
            yield chunk.taken()
    if rest := chunk.taken():
        yield rest


async def async_chunks(requests: Requests) -> AsyncIterator[list[ScheduleRequest]]:
    """Yield requests in lists, in their order."""
    if isinstance(requests, Iterable):
        for chunk in chunks(requests):
            yield chunk
        return
    open_chunk = _Chunk()
    async for request in requests:
        if open_chunk.add(request):
            yield open_chunk.taken()
    if rest := open_chunk.taken():
        yield rest
