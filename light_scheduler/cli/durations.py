"""Options that are durations. They need a unit, since people type them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click
from click.shell_completion import CompletionItem

from light_scheduler.durations import parse_typed_duration


class Duration(click.ParamType):
    """A duration option; the command receives ms."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_typed_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class DurationText(click.ParamType):
    """A duration that is passed on as typed, or one of `words`. The command receives the text."""

    name = "duration"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self._words:
            check(self, [value], param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Suggest the words. A duration cannot be guessed."""
        return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]


class BackoffText(click.ParamType):
    """A backoff series whose intervals need units. The command receives the text; the codec checks the rest."""

    name = "backoff"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        parts = [part.strip() for part in value.replace(",", " ").split()]
        named = dict(part.split("=", 1) for part in parts if "=" in part)
        check(self, [named[name] for name in ("initial", "max") if name in named] if named else parts, param, ctx)
        return value


def check(
    kind: click.ParamType, texts: Collection[str], param: click.Parameter | None, ctx: click.Context | None
) -> None:
    """Refuse the option unless all texts are durations."""
    for text in texts:
        try:
            parse_typed_duration(text)
        except ValueError as error:
            kind.fail(str(error), param, ctx)
