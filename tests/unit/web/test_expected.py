"""How errors describe valid values of parameters and members."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, UnsetType
from multidict import MultiDict

from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.expected import EXPECTED, expected
from light_scheduler.web.forms.parameters import ListParameters, read_parameters


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (bool, "true or false"),
        (int, "a whole number"),
        (float | None, "a number or null"),
        (list[str] | None, "an array of texts or null"),
        (Literal["a", "b"] | UnsetType, "one of a, b"),
        (Annotated[Colour | None, Meta(description="Colour.")], "one of red, blue or null"),
        (Annotated[int, Meta(ge=1, le=1_000)] | UnsetType, "a whole number from 1 to 1000"),
        (Annotated[int, Meta(ge=0)], "a whole number, 0 or more"),
        (Annotated[str, Meta(extra={EXPECTED: "a colour"})] | UnsetType, "a colour"),
        (msgspec.Struct, None),
    ],
)
def test_valid_values_are_described(kind: Any, words: str | None) -> None:
    assert expected(kind) == words


@pytest.mark.parametrize("limit", ["0", "1001", "1.5", "many", ""])
def test_a_wrong_number_in_a_query_is_refused_with_the_range_and_the_value(limit: str) -> None:
    with pytest.raises(QueryError, match=f"^limit: must be a whole number from 1 to 1000, not '{limit}'$"):
        read_parameters(ListParameters, MultiDict(limit=limit))
