"""Formats schedules: times, time rules, and untrusted text. Also how `get` and `list` reach a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import UNSET, UnsetType
from rich.console import Console
from rich.table import Table
from rich.text import Text

from light_scheduler.durations import distance, format_duration
from light_scheduler.payloads.masks import MASK
from light_scheduler.settings import Settings
from light_scheduler.tables.views import QueryError
from light_scheduler.wire.instants import format_instant

from .parameter_names import parameter_name

if TYPE_CHECKING:
    from light_scheduler.web.cluster.worker_http import WorkerHttp
    from light_scheduler.web.forms.documents import Content, DecodedView, TriggerView
    from light_scheduler.web.schedule_client import ScheduleReader

T = TypeVar("T")
R = TypeVar("R", bound="WorkerHttp")

_ANY_WIDTH = 100_000


def ask(settings: Settings, url: str | None, question: Callable[[ScheduleReader], Awaitable[T]]) -> T:
    """Send a query to a worker. A query that it refuses is reported as wrong usage."""
    from light_scheduler.web.schedule_client import ScheduleReader

    return ask_of(ScheduleReader, settings, url, question)


def ask_of(kind: type[R], settings: Settings, url: str | None, question: Callable[[R], Awaitable[T]]) -> T:
    """Send a query to a worker with a client of the given type, as `ask` does."""

    async def answer() -> T:
        async with kind(url or settings.web_url, settings.web_token, settings.http_security) as reader:
            return await question(reader)

    try:
        return asyncio.run(answer())
    except QueryError as error:
        raise click.BadParameter(error.reason, param_hint=parameter_name(error.field)) from error


def instant_text(ms: int, now: int) -> str:
    """Format an instant in UTC and relative to now: `2026-01-01T00:00:00.000Z (in 2h 5m)`."""
    return f"{format_instant(ms)} ({relative(ms - now)})"


def relative(ms: int) -> str:
    """Format a time difference by its two largest units: `in 2h 5m`, `3s 20ms ago`, `now`."""
    if ms == 0:
        return "now"
    return f"in {distance(ms)}" if ms > 0 else f"{distance(-ms)} ago"


def shown(text: str) -> Text:
    """Escape untrusted text: no markup and no control sequences reach the terminal."""
    return Text("".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text))


def content_text(content: Content | None) -> str:
    """Format bytes: as text, as base64, as null, or as `MASK`."""
    if content is None:
        return "(null)"
    if content.masked:
        return MASK
    return f"{content.base64} (base64)" if content.text is UNSET else content.text


def payload_text(payload: Content | None, decoded: DecodedView | UnsetType | None) -> str:
    """Format a payload: decoded and masked if possible, or else its bytes."""
    if decoded is None or decoded is UNSET:
        return content_text(payload)
    if decoded.error is not UNSET:
        return f"{content_text(payload)} (not decoded: {decoded.error})"
    return next(value for value in (decoded.json, decoded.text) if value is not UNSET)


def print_whole(table: Table) -> None:
    """Print a table in its full width. The terminal may wrap lines, but ids and topics can be copied and searched."""
    needed = Console(width=_ANY_WIDTH).measure(table).maximum
    Console(width=max(needed, Console().width)).print(table)


def trigger_text(trigger: TriggerView) -> str:
    """Format a time rule in a few words, without its bounds: `every 5m`, `cron 0 9 * * * (Europe/Prague)`."""
    if trigger.every is not UNSET:
        return f"every {format_duration(trigger.every)}" + (
            " after completion" if trigger.mode == "fixed-delay" else ""
        )
    if trigger.cron is not UNSET:
        given = [trigger.cron_dialect, trigger.timezone]
        where = ", ".join(part for part in given if part is not UNSET and part not in ("unix", "UTC"))
        return f"cron {trigger.cron}" + (f" ({where})" if where else "")
    backoff = trigger.backoff
    if backoff is UNSET:
        return "once"
    if backoff.intervals is not UNSET:
        return "backoff " + ",".join(map(format_duration, backoff.intervals))
    parts = {
        "initial": format_duration(backoff.initial or 0),
        "factor": f"{backoff.factor:g}",
        "max": UNSET if backoff.max is UNSET else format_duration(backoff.max),
        "attempts": backoff.attempts,
        "jitter": backoff.jitter,
    }
    return "backoff " + " ".join(f"{name}={part}" for name, part in parts.items() if part is not UNSET)


def bounds_text(trigger: TriggerView) -> str:
    """Format the bounds and the spread of a time rule; empty if it has none."""
    given = (
        ("from", trigger.start, format_instant),
        ("until", trigger.end, format_instant),
        ("firings at most:", trigger.max_firings, str),
        ("jitter", trigger.jitter, format_duration),
        ("window", trigger.window, format_duration),
    )
    return ", ".join(f"{name} {write(value)}" for name, value, write in given if value is not UNSET)
