"""The commands of a client that are on their way to the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from .commands import CommandToSend


class Unacknowledged:
    """Commands by the future of their acknowledgement, which nobody else may cancel: wait for it with a shield."""

    def __init__(self) -> None:
        self._commands: dict[asyncio.Future[Any], Sequence[CommandToSend]] = {}

    def add(self, acknowledged: asyncio.Future[Any], commands: Sequence[CommandToSend]) -> None:
        """Note commands until they are acknowledged, or have failed."""
        self._commands[acknowledged] = commands
        acknowledged.add_done_callback(self._ended)

    async def left_after(self, timeout: float) -> list[CommandToSend]:
        """Return the commands that are still on their way in `timeout` seconds, as soon as there are none."""
        if self._commands:
            await asyncio.wait(self._commands, timeout=timeout)
        return [command for commands in self._commands.values() for command in commands]

    def _ended(self, acknowledged: asyncio.Future[Any]) -> None:
        del self._commands[acknowledged]
        if not acknowledged.cancelled():
            acknowledged.exception()  # whoever gave up waiting is not told of a failure: it counts as seen
