"""Context of log lines: fields that are added to all JSON lines during a piece of work."""

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
    """Add fields to all later log lines of this task, and of tasks that it starts."""
    _current.set({**_current.get(), **fields})


async def without_log_fields(beginning: Coroutine[Any, Any, T]) -> T:
    """Run the start of a shared service without log fields, since its tasks outlive this task and serve others too."""
    return await asyncio.create_task(beginning, context=Context())


@contextmanager
def log_fields(**fields: str | int | None) -> Iterator[None]:
    """Add fields to log lines within the body. A field with the value None is left out.

    The body must not await: a coroutine that is dropped while it waits ends in another context.
    """
    known = {name: value for name, value in fields.items() if value is not None}
    token = _current.set({**_current.get(), **known})
    try:
        yield
    finally:
        _current.reset(token)
