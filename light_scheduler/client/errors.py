"""Errors of a client that carry what it sent or was answered."""

from __future__ import annotations

from light_scheduler.errors import ClientError
from light_scheduler.model import Result

from .receipt import Receipt


class ResultTimeout(ClientError):
    """No answer came in time. The command is in the log, where `receipt` says, and will be carried out."""

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
