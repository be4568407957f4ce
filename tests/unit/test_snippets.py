"""What is shown of a JSON document, and what is printed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.snippets import unlike

ONE, TWO = {"id": "a", "trigger": {"at": 1}}, {"id": "b", "trigger": {"at": 2}}


@pytest.mark.parametrize(
    ("shown", "printed", "places"),
    [
        (ONE, TWO, []),
        (ONE, {"id": "a"}, [".trigger"]),
        ({"id": "a"}, ONE, [".trigger"]),
        (ONE, {"id": "a", "trigger": None}, [".trigger"]),
        ({"id": "a", "trigger": None}, ONE, [".trigger"]),
        (ONE, {"id": "a", "trigger": [1]}, [".trigger"]),
        ({"schedules": [ONE]}, {"schedules": [TWO, ONE]}, []),
        ({"schedules": [ONE]}, {"schedules": []}, [".schedules[]"]),
        ({"schedules": []}, {"schedules": [ONE]}, []),
        ({"schedules": [ONE]}, {"schedules": [{"id": "a"}]}, [".schedules[].trigger"]),
        ({"schedules": [ONE]}, {"schedules": ["a"]}, [".schedules[]"]),
        ({"schedules": [ONE]}, {"schedules": None}, [".schedules"]),
        ({"labels": {"by": "me"}}, {"labels": {}}, []),
        ({"fires": 1}, {"fires": None}, []),
        ([ONE], ONE, [""]),
    ],
)
def test_only_values_may_differ(shown: Any, printed: Any, places: list[str]) -> None:
    assert unlike(json.dumps(shown), json.dumps(printed)) == places


def test_documents_are_compared_line_by_line() -> None:
    assert unlike('{"a": 1}\n{"b": 1}\n', '{"a": 2}\n{"c": 2}\n') == [".b", ".c"]
    assert unlike('{"a": 1}\n{"b": 1}\n{"b": 2}\n', '{"a": 2}\n{"b": 2}\n') == [".b"]
