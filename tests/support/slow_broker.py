"""A server that speaks as much of Kafka's protocol as a connection and a heartbeat need, and takes its time."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Answer = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]
"""Sends the bytes of an answer as it likes."""

API_VERSIONS, HEARTBEAT = 18, 12
VERSIONS = struct.pack(">hi6h", 0, 2, API_VERSIONS, 0, 0, HEARTBEAT, 1, 1)


@asynccontextmanager
async def slow_broker(answer: Answer, throttle_ms: int = 0) -> AsyncIterator[str]:
    """Yield the address of a broker that answers heartbeats in a way of its own, and all else at once.

    Its answers tell the client to wait for `throttle_ms`.
    """
    accepted = struct.pack(">ih", throttle_ms, 0)
    open_connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_connections.append(writer)
        while True:
            try:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                key, _, correlation = struct.unpack_from(">hhi", await reader.readexactly(size))
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            content = struct.pack(">i", correlation) + (accepted if key == HEARTBEAT else VERSIONS)
            frame = struct.pack(">i", len(content)) + content
            if key == HEARTBEAT:
                await answer(writer, frame)
            else:
                writer.write(frame)

    server = await asyncio.start_server(serve, "127.0.0.1")
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        for writer in open_connections:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def hanging() -> AsyncIterator[str]:
    """A server that takes connections and never answers."""
    open_connections: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: open_connections.append(writer), "127.0.0.1")
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        for writer in open_connections:
            writer.close()
