"""Which cases of a table run in every run, and which only in a night."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def by_day(count: int, cases: Iterable[object]) -> list[object]:
    """Return all cases for `parametrize`, of which only the first `count` run without `--every-case`."""
    return [case if number < count else _at_night(case) for number, case in enumerate(cases)]


def _at_night(case: object) -> object:
    if isinstance(case, ParameterSet):
        return case._replace(marks=[*case.marks, pytest.mark.every_case])
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.every_case)
