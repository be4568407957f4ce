"""Parses and formats instants: integer UTC epoch ms, or RFC 3339 with an offset."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from light_scheduler.model import LATEST_INSTANT

FIRST_PLAUSIBLE = 100_000_000_000
"""The smallest integer that counts as milliseconds (March 1973). A smaller one looks like seconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MAX_CHARACTERS = 64
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))?", re.ASCII)
_LIKE = "use UTC epoch milliseconds (1767225600000) or RFC 3339 with an offset (2026-01-01T00:00:00Z)"


class BeforeEpochError(ValueError):
    """An instant is before 1970."""


def parse_instant(text: str) -> int:
    """Parse an instant. Return UTC epoch ms.

    A fraction finer than a millisecond is rounded up, so that nothing happens before the requested instant. Raises
    ValueError, which shows valid formats; BeforeEpochError for an instant before 1970.
    """
    if len(text) <= _MAX_CHARACTERS:
        if text.isdigit() and text.isascii():
            return _checked_integer(int(text))
        if match := _RFC3339.fullmatch(text):
            return _from_rfc3339(text, match)
        if text[:1] == "-" and text[1:].isdigit() and text.isascii():
            raise ValueError(f"{text!r} is negative: {_LIKE}")
    raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is not an instant: {_LIKE}")


def parse_lower_bound(text: str) -> int:
    """Parse the start of a time range. Return UTC epoch ms. Like `parse_instant`, but also allows 0."""
    return 0 if text == "0" else parse_instant(text)


def format_instant(ms: int) -> str:
    """Format an instant (UTC epoch ms, up to the year 9999) as RFC 3339 in UTC with milliseconds."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{ms % 1_000:03d}Z"


def instant_of(moment: datetime) -> int:
    """Convert an aware datetime to UTC epoch ms, rounded up to the next millisecond.

    Raises ValueError if it has no offset, since its instant would depend on the machine.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: use an aware datetime, such as datetime.now(UTC)")
    return -((_EPOCH - moment) // _MILLISECOND)


def _checked_integer(ms: int) -> int:
    if ms < FIRST_PLAUSIBLE:
        raise ValueError(f"{ms} looks like seconds: {_LIKE}")
    if ms > LATEST_INSTANT:
        raise ValueError(f"{ms} is beyond the year 9999 (microseconds or nanoseconds?): {_LIKE}")
    return ms


def _from_rfc3339(text: str, match: re.Match[str]) -> int:
    day, minute, second, fraction, zulu, sign, hours, minutes = match.groups()
    if not (zulu or sign):
        raise ValueError(f"{text!r} has no offset: end it with Z or, for example, +01:00")
    leap = second == "60"
    try:
        # fromisoformat gets a canonical form, so it does not matter that it accepts more than RFC 3339.
        local = datetime.fromisoformat(f"{day}T{minute}:{'59' if leap else second}+00:00")
        if sign and (int(hours) > 23 or int(minutes) > 59):
            raise ValueError("offset must be at most 23:59")
    except ValueError as error:
        raise ValueError(f"{text!r} is not an instant: {error}") from None
    offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1) if sign else 0
    ms = (local - _EPOCH) // _MILLISECOND - offset * 60_000 + (1_000 if leap else 0)
    if leap and ms % 86_400_000:
        raise ValueError(f"{text!r} is not an instant: only the last minute of a UTC day can have a second 60")
    if fraction:
        ms += -(-int(fraction) * 1_000 // 10 ** len(fraction))
    if ms < 0:
        raise BeforeEpochError(f"{text!r} is before 1970")
    if ms > LATEST_INSTANT:
        raise ValueError(f"{text!r} is beyond the year 9999")
    return ms
