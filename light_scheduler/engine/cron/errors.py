"""Errors in an expression or a time zone, with their position."""

from __future__ import annotations

from typing import Literal

CronDialect = Literal["unix", "cron4j", "quartz", "spring"]


class CronError(ValueError):
    """An expression or a time zone is invalid.

    `field` is `cron` or `timezone`. `position` is the 0-based place of the fault in the expression. The message shows
    it as a column, counted from 1. None if the fault has no single place.
    """

    def __init__(self, message: str, *, field: Literal["cron", "timezone"] = "cron", position: int | None = None):
        super().__init__(message)
        self.field = field
        self.position = position


def fault(dialect: CronDialect, position: int, problem: str) -> CronError:
    """Return the error for a fault at a 0-based position of an expression."""
    return CronError(f"not a {dialect} cron expression: {problem} (column {position + 1})", position=position)
