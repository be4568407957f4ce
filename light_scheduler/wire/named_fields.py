"""Replaces names of headers in texts with the names of the arguments, columns or options that became these headers."""

from __future__ import annotations

import re
from collections.abc import Callable

from .fields import CONTROL_PREFIX, RULES

_HEADER = re.compile(rf"(?<![\w'\"-]){CONTROL_PREFIX}([a-z0-9]+(?:-[a-z0-9]+)*)(?![\w'\"-])")
"""Does not match within quotes, since those are values."""


def in_names(text: str, name_of: Callable[[str], str]) -> str:
    """Replace the header of each control field, such as `ack-timeout`, with `name_of(field)`."""
    return _HEADER.sub(lambda header: name_of(header[1]) if header[1] in RULES else header[0], text)
