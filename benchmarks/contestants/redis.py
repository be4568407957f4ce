"""A private Redis server."""

from __future__ import annotations

import subprocess
from pathlib import Path

from light_scheduler.devkit.leash import Leash
from light_scheduler.host.ports import free_port

from .contestant import await_that

SETTINGS = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
"""An append-only log of every write, as Redis' documentation recommends for durable data."""


class Redis:
    """Runs in an empty folder until `close`. `server` is its program, with `redis-cli` in the same folder."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._client = server.with_name("redis-cli")
        self._port = free_port()
        folder.mkdir()
        words = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
        with (folder / "log").open("ab") as log:
            self._process = Leash(
                [server, "--bind", "127.0.0.1", "--port", str(self._port), "--dir", folder, *words],
                output=log,
            )
        await_that(lambda: self.ask("PING") == "PONG", "the start of Redis")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def ask(self, *command: str) -> str:
        """Return the answer to a command; empty if there is none."""
        asked = [str(self._client), "-p", str(self._port), *command]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()

    @property
    def version(self) -> str:
        return self._information("server", "redis_version")

    @property
    def memory_bytes(self) -> int:
        """The memory that its data use."""
        return int(self._information("memory", "used_memory"))

    def close(self) -> None:
        self._process.kill()

    def _information(self, section: str, name: str) -> str:
        return dict(line.split(":", 1) for line in self.ask("INFO", section).splitlines() if ":" in line)[name]
