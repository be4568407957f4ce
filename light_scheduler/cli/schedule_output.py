"""What `get` and `list` have in common: how they reach a worker, and how they show times and text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click
from rich.text import Text
from yarl import URL

from light_scheduler.settings import Settings
from light_scheduler.tables.views import QueryError
from light_scheduler.wire.instants import format_instant

if TYPE_CHECKING:
    from light_scheduler.web.reader import ScheduleReader

T = TypeVar("T")

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))

url_option = click.option("--url", help="Any worker's address. Default: http://WEB_HOST:WEB_PORT.")
tenant_option = click.option("--tenant", default="default", show_default=True, help="Whose schedules.")


def ask(settings: Settings, url: str | None, question: Callable[[ScheduleReader], Awaitable[T]]) -> T:
    """Put a question to a worker. What it refuses is wrong use of the command."""
    from light_scheduler.web.reader import ScheduleReader

    async def answer() -> T:
        async with ScheduleReader(url or worker_url(settings)) as reader:
            return await question(reader)

    try:
        return asyncio.run(answer())
    except QueryError as error:
        raise click.BadParameter(error.reason, param_hint="--" + error.field.replace("_", "-")) from error


def worker_url(settings: Settings) -> str:
    """Return the address of the worker that the settings speak of."""
    return str(URL.build(scheme="http", host=settings.web_host, port=settings.web_port))


def instant_text(ms: int, now: int) -> str:
    """Show an instant in UTC and from now: `2026-01-01T00:00:00.000Z (in 2h 5m)`."""
    return f"{format_instant(ms)} ({relative(ms - now)})"


def relative(ms: int) -> str:
    """Show a distance from now by its two largest units: `in 2h 5m`, `3s 20ms ago`, `now`."""
    rest = abs(ms)
    parts: list[str] = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    distance = " ".join(filter(None, parts))
    if not distance:
        return "now"
    return f"in {distance}" if ms > 0 else f"{distance} ago"


def shown(text: str) -> Text:
    """Show text of others: no markup, and nothing in it that a terminal would obey."""
    return Text("".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text))
