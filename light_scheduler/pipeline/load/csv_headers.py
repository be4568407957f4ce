"""Headers of CSV files: Spark takes columns by position, whatever the header of another file says.

So each file's header is compared with the columns. Names that Spark has made up are in no header: with them, nothing is
compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_OPTION = "enforceSchema"
_MADE_UP = re.compile(r"_c\d+")
"""What Spark calls a column without a name, and each if there is no header."""


def comparing_headers(format: str, reading: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    """Return what makes a reader refuse a file with another header, unless `reading` says whether it does."""
    if format != "csv" or _OPTION.lower() in map(str.lower, reading):
        return {}
    numbered = Counter(
        name.removesuffix(str(number)) for number, name in enumerate(columns) if _is_numbered(name, number)
    )
    is_made_up = any(map(_MADE_UP.fullmatch, columns)) or any(count > 1 for count in numbered.values())
    return {} if is_made_up else {_OPTION: "false"}


def _is_numbered(name: str, number: int) -> bool:
    """Return whether a name ends like those that Spark makes up for columns of one name, by its number."""
    return name.endswith(str(number)) and name != str(number)
