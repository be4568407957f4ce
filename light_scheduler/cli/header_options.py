"""Options that are headers of a command: their names and help are those of the codec's own table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from light_scheduler.wire.fields import RULES

F = TypeVar("F", bound=Callable[..., Any])

_SYNTAX = {
    **dict.fromkeys(("at", "start", "end"), "INSTANT"),
    **dict.fromkeys(("after", "every", "jitter", "window", "misfire-grace", "ttl", "ack-timeout"), "DURATION"),
    **dict.fromkeys(("max-firings", "max-attempts", "expected-version", "target-partition", "attempt"), "N"),
    **dict.fromkeys(("key", "target-key", "target-partition-key"), "KEY"),
    "mode": "fixed-rate|fixed-delay",
    "cron": "EXPRESSION",
    "cron-dialect": "unix|cron4j|quartz|spring",
    "timezone": "ZONE",
    "backoff": "INTERVALS|RULE",
    "misfire": "coalesce|skip|all",
    "on-past": "fire|reject|DURATION",
    "priority": "0..255",
    "labels": "NAME=VALUE,...",
    "on-conflict": "replace|keep|fail",
    "overlap": "allow|skip|queue",
    "target-topic": "TOPIC",
    "target-key-base64": "BASE64",
}


def header_options(*fields: str, required: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Add an option for each field; the command receives text, None for those that are not given.

    What text is right is for the codec to say: an option that is not is named by the error.
    """

    def decorate(function: F) -> F:
        for field in reversed(fields):
            rule = RULES[field]
            is_flag = "boolean" in rule.types
            function = click.option(
                f"--{field}",
                is_flag=is_flag,
                metavar=None if is_flag else _SYNTAX[field],
                required=field in required,
                help=rule.summary.removeprefix("true: ").capitalize() if is_flag else rule.summary,
            )(function)
        return function

    return decorate
