"""A TCP proxy that can be cut. It runs in its own process, so it costs its parent no time, and ends with it.

    python -m light_scheduler.bench.chaos.proxy <port>:<port behind it> ...

It reads orders from standard input, one per line: `cut 0` closes the connections of the first proxy and accepts no
others, `stall 0` keeps them open but forwards nothing, `heal 0` ends either. It ends with standard input.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
_CHUNK = 1 << 18
_READY = b"ready\n"


class Proxies:
    """Proxies in a child process, by number; `routes` are (port, port behind it). A context manager."""

    def __init__(self, routes: Sequence[tuple[int, int]]) -> None:
        self._process = subprocess.Popen(  # nosec B603 # this program
            [sys.executable, "-m", __name__, *(f"{port}:{behind}" for port, behind in routes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # only the parent handles Ctrl-C
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != _READY:
            self.close()
            raise OSError("the proxy did not start: check that its ports are free")

    def order(self, word: str, number: int) -> None:
        """Send `cut`, `stall` or `heal` to a proxy."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word} {number}\n".encode())
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Proxy:
    def __init__(self, port: int, behind: int) -> None:
        self._port = port
        self._behind = behind
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self) -> None:
        await asyncio.start_server(self._connected, HOST, self._port, limit=_CHUNK)

    def cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def stall(self) -> None:
        self._flows.clear()

    def heal(self) -> None:
        self._is_cut = False
        self._flows.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            onward_reader, onward = await asyncio.open_connection(HOST, self._behind, limit=_CHUNK)
        except OSError:  # the server behind it is down
            writer.transport.abort()
            return
        self._writers |= {writer, onward}
        try:
            await asyncio.gather(self._pass_on(reader, onward), self._pass_on(onward_reader, writer))
        finally:
            self._writers -= {writer, onward}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self._flows.wait()
                writer.write(chunk)
                await writer.drain()
        writer.close()


async def _main(routes: Sequence[str]) -> None:
    proxies = [_Proxy(*map(int, route.split(":"))) for route in routes]
    for proxy in proxies:
        await proxy.serve()
    sys.stdout.buffer.write(_READY)
    sys.stdout.flush()
    while line := await asyncio.to_thread(sys.stdin.readline):
        word, _, number = line.strip().partition(" ")
        proxy = proxies[int(number)]
        {"cut": proxy.cut, "stall": proxy.stall, "heal": proxy.heal}[word]()
    os._exit(0)  # connections end with the process; asyncio would report each of them


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
