"""Reads a body line by line while it arrives. A worker holds one line at a time, however long the body is."""

from __future__ import annotations

import asyncio
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import NamedTuple

from aiohttp import web

from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits.bodies import LEAST_BYTES_PER_S, TIMEOUT_S, unreadable_as_problems

LARGEST_LINE = 1 << 20
LINE_S = TIMEOUT_S + LARGEST_LINE / LEAST_BYTES_PER_S
"""How long a worker waits for the rest of a line."""

LINES_AT_ONCE = 1_000
"""After this many lines, and after each piece of the body, others get the loop: a small compressed body can contain
millions of blank lines, and reading them awaits nothing."""


class Line(NamedTuple):
    """A line that is not blank, numbered from 1; `text` is None if it is too long."""

    number: int
    text: bytes | None


class LineError(Exception):
    """No more lines can be read. `number` is that of the missing line; the cause is a ProblemError."""

    def __init__(self, number: int, refusal: ProblemError) -> None:
        super().__init__(number)
        self.number = number
        self.refusal = refusal


async def lines_of(request: web.Request) -> AsyncIterator[Line]:
    """Yield the lines of a body that has not been read. Raises LineError."""
    number, held, is_too_long = 1, bytearray(), False
    waits_until = _now() + LINE_S
    while True:
        try:
            chunk = await _next_chunk(request, waits_until)
        except ProblemError as refusal:
            raise LineError(number, refusal) from None
        *ended, rest = chunk.split(b"\n")
        for place, part in enumerate(ended):
            if place % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)
            is_too_long = is_too_long or len(held) + len(part) > LARGEST_LINE
            if is_too_long:
                yield Line(number, None)
            elif text := _text(number, held + part):
                yield Line(number, text)
            number, is_too_long = number + 1, False
            held.clear()
        is_too_long = is_too_long or len(held) + len(rest) > LARGEST_LINE
        if is_too_long:
            held.clear()
        else:
            held += rest
        if not chunk:
            break
        if ended:
            waits_until = _now() + LINE_S
        else:
            await asyncio.sleep(0)
    if is_too_long:
        yield Line(number, None)
    elif text := _text(number, held):
        yield Line(number, text)


def _text(number: int, line: bytearray) -> bytes | None:
    """Return a line, without a byte order mark if it is the first; None if it is blank."""
    text = bytes(line.removeprefix(BOM_UTF8) if number == 1 else line)
    return text if text.strip() else None


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _next_chunk(request: web.Request, waits_until: float) -> bytes:
    """Return bytes as they arrive; none at the end. Raises ProblemError."""
    with unreadable_as_problems():
        try:
            async with asyncio.timeout_at(waits_until):
                return await request.content.readany()
        except TimeoutError:
            detail = f"No line arrived within {LINE_S:.0f} s. Send the rest of the lines in another request."
            raise ProblemError(HTTPStatus.REQUEST_TIMEOUT, detail) from None
