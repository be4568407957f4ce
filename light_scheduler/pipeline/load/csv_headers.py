"""Headers of CSV files. Spark assigns columns by position, even if another file has a different header.

So each file's header is compared with the columns. Nothing is compared if Spark has generated column names, since these
are not in any header.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_OPTION = "enforceSchema"
_MADE_UP = re.compile(r"_c\d+")
"""Spark's name for a column without a name, and for all columns if there is no header."""


def comparing_headers(format: str, reading: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    """Return reader options that refuse a file with a different header, unless `reading` already decides about that."""
    if format != "csv" or _OPTION.lower() in map(str.lower, reading):
        return {}
    numbered = Counter(
        name.removesuffix(str(number)) for number, name in enumerate(columns) if _is_numbered(name, number)
    )
    is_made_up = any(map(_MADE_UP.fullmatch, columns)) or any(count > 1 for count in numbered.values())
    return {} if is_made_up else {_OPTION: "false"}


def _is_numbered(name: str, number: int) -> bool:
    """Return whether a name ends with its column's number, like those that Spark generates for duplicate names."""
    return name.endswith(str(number)) and name != str(number)
