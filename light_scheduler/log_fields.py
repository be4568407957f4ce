"""Context of log lines: fields that all JSON lines have while a piece of work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

Fields = Mapping[str, str | int]

NO_FIELDS: Fields = {}
_current: ContextVar[Fields] = ContextVar("log fields", default=NO_FIELDS)


def current_fields() -> Fields:
    """Return the fields of this task or thread."""
    return _current.get()


def begin_log_fields(fields: Fields) -> None:
    """Add fields to what is logged by this task from now on, and by those that it starts."""
    _current.set({**_current.get(), **fields})


async def without_log_fields(beginning: Coroutine[Any, Any, T]) -> T:
    """Begin what others share with this task: tasks that it starts outlive this one, and log nothing of its fields."""
    return await asyncio.create_task(beginning, context=Context())


@contextmanager
def log_fields(**fields: str | int | None) -> Iterator[None]:
    """Add fields to what is logged meanwhile. None: it is not known.

    Only around what awaits nothing: a coroutine that is dropped while it waits ends in another context.
    """
    known = {name: value for name, value in fields.items() if value is not None}
    token = _current.set({**_current.get(), **known})
    try:
        yield
    finally:
        _current.reset(token)
