"""Options that are instants. Seconds can be omitted, since people type them."""

from __future__ import annotations

import re
from typing import Any

import click

from light_scheduler.wire import parse_instant
from light_scheduler.wire.instants import parse_lower_bound

_NO_SECONDS = re.compile(r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d)((?:[Zz]|[+-]\d\d:\d\d)?)", re.ASCII)


def with_seconds(text: str) -> str:
    """Return the RFC 3339 text of an instant, with missing seconds set to 0. Any other text is returned unchanged."""
    match = _NO_SECONDS.fullmatch(text)
    return text if match is None else f"{match[1]}:00{match[2]}"


class Instant(click.ParamType):
    """An option that is an instant. The command receives UTC epoch ms. With `lower_bound`, 0 is allowed."""

    name = "instant"

    def __init__(self, *, lower_bound: bool = False) -> None:
        self._parse = parse_lower_bound if lower_bound else parse_instant

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):  # a default
            return value
        try:
            return self._parse(with_seconds(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class InstantText(click.ParamType):
    """An instant that is passed on as text. Its receiver checks it."""

    name = "instant"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        return with_seconds(value)
