"""Converts the paths of operations to routes."""

from __future__ import annotations

import re
from collections.abc import Iterable

ID = "{id}"


def route_of(path: str, paths: Iterable[str]) -> str:
    """Return the route of a path, which is one of `paths`.

    An id matches the rest of its path, slashes included, unless the rest ends like another path with the same
    beginning. In that case, only an encoded slash is part of the id.
    """
    begin, _, end = path.partition(ID)
    parts = (each.partition(ID) for each in paths)
    endings = [] if end else dict.fromkeys(ending for before, _, ending in parts if before == begin and ending)
    return path.replace(ID, "{id:.+" + "".join(f"(?<!{re.escape(ending)})" for ending in endings) + "}")
