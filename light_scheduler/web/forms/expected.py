"""Describes in words which values a parameter or a member of a body takes, for errors about other values."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta

EXPECTED = "expected"
"""Key in the `extra` of a type's metadata: a description of valid texts."""

_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "an array of texts",
    tuple: "an array of texts",
    NoneType: "null",
}


def expected(kind: Any) -> str | None:
    """Return a description of a type's values; None if there is none, as for the type of a document."""
    return " or ".join(_alternatives(kind)) or None


def _alternatives(kind: Any) -> Iterator[str]:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _annotated(*parts)
    elif origin in (Union, UnionType):
        for each in parts:
            yield from _alternatives(each)
    elif origin is Literal:
        yield f"one of {', '.join(map(str, parts))}"
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield f"one of {', '.join(str(each.value) for each in kind)}"
    elif word := _WORDS.get(origin or kind):
        yield word


def _annotated(kind: Any, *notes: Any) -> Iterator[str]:
    metas = [note for note in notes if isinstance(note, Meta)]
    if said := next((meta.extra[EXPECTED] for meta in metas if meta.extra and EXPECTED in meta.extra), None):
        yield said
    else:
        limits = "".join(map(_range, metas))
        yield from (each + limits for each in _alternatives(kind))


def _range(meta: Meta) -> str:
    if meta.ge is None:
        return ""
    return f", {meta.ge} or more" if meta.le is None else f" from {meta.ge} to {meta.le}"
