"""Texts about the headers of commands, in other names: those of arguments, columns or options that became headers."""

from __future__ import annotations

import re
from collections.abc import Callable

from .fields import CONTROL_PREFIX, RULES

_HEADER = re.compile(rf"(?<![\w'\"-]){CONTROL_PREFIX}([a-z0-9]+(?:-[a-z0-9]+)*)(?![\w'\"-])")
"""Not within quotes: those are values."""


def in_names(text: str, name_of: Callable[[str], str]) -> str:
    """Return a text with `name_of` of each control field in place of its header: `ack-timeout` is a field."""
    return _HEADER.sub(lambda header: name_of(header[1]) if header[1] in RULES else header[0], text)
