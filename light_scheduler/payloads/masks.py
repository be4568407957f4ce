"""Masked fields and headers. Pure.

A name, such as `password` or `*_token`, means each field with that name at any depth, and headers. A path, such as
`card.number` or `*.iban`, begins at the outermost object. `*` stands for any characters within a name. Items of lists
have the path of their list. A dot in the name of a field separates, as in a path: `user.email`. Case is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

MASK = "********"

_Place = frozenset[tuple[int, int]]
"""The paths that match so far: (number of the path, number of matched names)."""

_decode = msgspec.json.Decoder(float_hook=Decimal).decode  # keeps all digits
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Masks:
    """Names and paths that are masked."""

    def __init__(self, fields: Iterable[str]) -> None:
        written = [each.casefold() for each in fields]
        self._headers = [_pattern(each) for each in written]
        self._names = [_pattern(each) for each in written if "." not in each]
        self._paths = [[_pattern(name) for name in each.split(".")] for each in written if "." in each]

    def __bool__(self) -> bool:
        """Return whether anything is masked."""
        return bool(self._headers)

    def hides_header(self, name: str) -> bool:
        """Return whether the value of a header is masked."""
        return _is_any(self._headers, name.casefold())

    def masked(self, json: bytes) -> bytes:
        """Return JSON with `MASK` in place of masked values. Of a repeated key, the last value is kept.

        Raises ValueError for invalid JSON, and RecursionError for JSON that is nested too deeply.
        """
        outermost = [_decode(json)]
        waiting: list[tuple[Any, _Place]] = [(outermost, frozenset((number, 0) for number in range(len(self._paths))))]
        while waiting:
            value, place = waiting.pop()
            if isinstance(value, list):
                waiting += [(item, place) for item in value if isinstance(item, list | dict)]
                continue
            for key in value:
                inside = self._below(place, key)
                if inside is None:
                    value[key] = MASK
                elif isinstance(value[key], list | dict):
                    waiting.append((value[key], inside))
        return _encode(outermost[0])

    def _below(self, place: _Place, key: str) -> _Place | None:
        """Return the place of a field; None if the field is masked."""
        for name in key.casefold().split("."):
            if _is_any(self._names, name):
                return None
            reached = {(path, at + 1) for path, at in place if self._paths[path][at].fullmatch(name)}
            if any(at == len(self._paths[path]) for path, at in reached):
                return None
            place = frozenset(reached)
        return place


def _pattern(written: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, written.split("*"))), re.DOTALL)


def _is_any(patterns: list[re.Pattern[str]], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
