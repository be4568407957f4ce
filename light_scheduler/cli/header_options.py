"""Options for command headers. Their names and help texts come from the codec's table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from light_scheduler.model import CronDialect, Misfire, OnConflict, Overlap
from light_scheduler.wire.fields import RULES

from .durations import BackoffText, DurationText
from .instants import InstantText

F = TypeVar("F", bound=Callable[..., Any])

_INSTANTS = ("at", "start", "end")
_DURATIONS = ("after", "every", "jitter", "window", "misfire-grace", "ttl", "ack-timeout")
_CHOICES = {
    "mode": ("fixed-rate", "fixed-delay"),
    "cron-dialect": get_args(CronDialect),
    "misfire": get_args(Misfire),
    "on-conflict": get_args(OnConflict),
    "overlap": get_args(Overlap),
}
_TYPES: dict[str, click.ParamType] = {
    **dict.fromkeys(_INSTANTS, InstantText()),
    **dict.fromkeys(_DURATIONS, DurationText()),
    **{field: click.Choice(choices) for field, choices in _CHOICES.items()},
    "on-past": DurationText("fire", "reject"),
    "backoff": BackoffText(),
}
_SYNTAX = {
    **dict.fromkeys(_INSTANTS, "INSTANT"),
    **dict.fromkeys(_DURATIONS, "DURATION"),
    **dict.fromkeys(("max-firings", "max-attempts", "expected-version", "target-partition", "attempt"), "N"),
    **dict.fromkeys(("key", "target-key", "target-partition-key"), "KEY"),
    **{field: "|".join(choices) for field, choices in _CHOICES.items()},
    "cron": "EXPRESSION",
    "timezone": "ZONE",
    "backoff": "INTERVALS|RULE",
    "on-past": "fire|reject|DURATION",
    "priority": "0..255",
    "labels": "NAME=VALUE,...",
    "target-topic": "TOPIC",
    "target-key-base64": "BASE64",
}


def header_options(*fields: str, required: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Add an option for each field. The command receives text, or None if the option is not given.

    The codec checks the texts; its error names the invalid option.
    """

    def decorate(function: F) -> F:
        for field in reversed(fields):
            rule = RULES[field]
            is_flag = "boolean" in rule.types
            function = click.option(
                f"--{field}",
                is_flag=is_flag,
                type=_TYPES.get(field),
                metavar=None if is_flag else _SYNTAX[field],
                required=field in required,
                help=rule.summary.removeprefix("true: ").capitalize() if is_flag else rule.summary,
            )(function)
        return function

    return decorate
