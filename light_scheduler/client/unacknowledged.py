"""A client's commands that the broker has not acknowledged yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from .commands import CommandToSend


class Unacknowledged:
    """Commands by the future of their acknowledgement. Do not cancel these futures: wait for them with a shield."""

    def __init__(self) -> None:
        self._commands: dict[asyncio.Future[Any], Sequence[CommandToSend]] = {}

    def add(self, acknowledged: asyncio.Future[Any], commands: Sequence[CommandToSend]) -> None:
        """Track commands until they are acknowledged or have failed."""
        self._commands[acknowledged] = commands
        acknowledged.add_done_callback(self._ended)

    async def left_after(self, timeout: float) -> list[CommandToSend]:
        """Return the commands that are still unacknowledged after `timeout` seconds; return earlier if there are none
        left."""
        if self._commands:
            await asyncio.wait(self._commands, timeout=timeout)
        return [command for commands in self._commands.values() for command in commands]

    def _ended(self, acknowledged: asyncio.Future[Any]) -> None:
        del self._commands[acknowledged]
        if not acknowledged.cancelled():
            acknowledged.exception()  # mark a failure as retrieved, since callers may have given up waiting
