"""Deliveries and their times: lines that a peer's job wrote, or records that a consumer received."""

from __future__ import annotations

import threading
import zlib
from pathlib import Path
from typing import NamedTuple, Protocol

from light_scheduler.bench.chaos.reading import places, reader
from light_scheduler.clock import SystemClock


class Arrival(NamedTuple):
    """A delivery: its key, when it arrived (UTC epoch ms), and the CRC-32 of its payload."""

    key: bytes
    at: int
    checksum: int


class Arrivals(Protocol):
    """Deliveries as they arrive."""

    def seen(self) -> list[Arrival]:
        """Return all deliveries so far, in order of arrival."""


class WrittenArrivals:
    """Lines of a file, `key at checksum`, which the jobs of a peer append to.

    A line only needs a write to an open file, which survives a SIGKILL: less than any real delivery.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._seen: list[Arrival] = []
        path.touch()

    def seen(self) -> list[Arrival]:
        with self._path.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.splitlines():
            key, at, checksum = line.split()
            self._seen.append(Arrival(key, int(at), int(checksum)))
        return self._seen


class ReadArrivals(threading.Thread):
    """Records of a topic, with the time when a continuously reading read_committed consumer received them."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._consumer = reader(servers)
        self._consumer.assign(places(self._consumer, topic))
        self._clock = SystemClock()
        self._seen: list[Arrival] = []
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            chunk = self._consumer.consume(1, 0.2)
            chunk += self._consumer.consume(5_000, 0)
            now = self._clock.now()
            for message in chunk:
                if message.error() is None:
                    self._seen.append(Arrival(message.key() or b"", now, zlib.crc32(message.value() or b"")))
        self._consumer.close()

    def seen(self) -> list[Arrival]:
        return self._seen

    def close(self) -> None:
        self._ended.set()
        self.join()
