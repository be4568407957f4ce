"""Errors of a client that carry the command sent or the answer received."""

from __future__ import annotations

import asyncio
from typing import Any

from light_scheduler.errors import BrokerError, ClientError
from light_scheduler.model import Result

from .receipt import Receipt


class ResultTimeout(ClientError):
    """No answer came in time. The command is in the log at the place of `receipt`, and will be carried out."""

    retriable = True

    def __init__(self, reason: str, receipt: Receipt) -> None:
        super().__init__(reason)
        self.receipt = receipt


class CommandRefused(ClientError):
    """The scheduler refused a command."""

    def __init__(self, result: Result) -> None:
        where = f" ({result.field})" if result.field else ""
        super().__init__(f"{result.command} {result.tenant}/{result.id}: {result.outcome}{where}: {result.reason}")
        self.result = result


class NotAcknowledged(BrokerError):
    """The broker did not acknowledge a command in time. The command may be in the log, or may still be sent.

    `acknowledged` eventually yields its place. The producer owns it: wait for it with a shield or with `asyncio.wait`.
    """

    def __init__(self, reason: str, acknowledged: asyncio.Future[Any]) -> None:
        super().__init__(reason)
        self.acknowledged = acknowledged


class NotDelivered(BrokerError):
    """A client was closed before the broker had acknowledged all commands: they may or may not be in the log.

    `commands` contains their tenants and ids. You can safely send commands with your own ids again.
    """

    def __init__(self, commands: list[tuple[str, str]], timeout: float) -> None:
        shown = ", ".join(f"{tenant}/{id}" for tenant, id in commands[:5]) + (", ..." if len(commands) > 5 else "")
        super().__init__(
            f"{len(commands)} commands were not acknowledged within {timeout:g} s of closing the client: {shown}"
        )
        self.commands = commands
