"""Durations in a query string: they need a unit, since people type them."""

from __future__ import annotations

import re

from light_scheduler.durations import parse_typed_duration

_DURATIONS = frozenset({"after", "every", "jitter", "window", "misfire-grace", "on-past", "ttl", "ack-timeout"})
_BACKOFF_DURATIONS = ("", "initial", "max")
_SEPARATORS = re.compile(r"[,\s]+")


def refuse_bare_durations(field: str, text: str) -> None:
    """Raise ValueError if a duration of a schedule's field has no unit."""
    if field in _DURATIONS:
        _refuse_bare(text)
    elif field == "backoff":
        for part in _SEPARATORS.split(text):
            name, _, duration = part.rpartition("=")
            if name in _BACKOFF_DURATIONS:
                _refuse_bare(duration)


def _refuse_bare(text: str) -> None:
    if text.isascii() and text.isdigit():
        parse_typed_duration(text)
