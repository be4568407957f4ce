"""Series by Spark's own arithmetic, against what history tells of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from light_scheduler.pipeline.audit.bounds import Bounds
from light_scheduler.pipeline.audit.evidence import COMMAND, HISTORY, IMPORTED
from light_scheduler.pipeline.audit.gathering import CARRIED, COLUMNS
from light_scheduler.pipeline.audit.rates import MOST_LISTED, disagreements, events, series

pytestmark = [pytest.mark.pipeline]

STEP = 10
Line = tuple[str, int, int]
"""Event, due and count."""

CASES: dict[str, tuple[list[Line], dict[str, list[int]]]] = {
    "as it should be": ([("fired", 10, 1), ("fired", 20, 1), ("skipped", 30, 3), ("fired", 60, 1)], {}),
    "missing": ([("fired", 10, 1), ("fired", 40, 1)], {"missing": [20, 30]}),
    "missing from the start": ([("fired", 30, 1)], {"missing": [10, 20]}),
    "told twice": ([("fired", 10, 1), ("fired", 10, 1), ("fired", 20, 1)], {}),
    "counted twice": ([("skipped", 10, 4), ("fired", 20, 1), ("fired", 50, 1)], {}),
    "between": ([("fired", 10, 1), ("fired", 15, 1), ("fired", 20, 1)], {"unexpected": [15]}),
    "beside, and then nothing": ([("fired", 10, 1), ("skipped", 25, 2)], {"unexpected": [25, 35], "missing": [20, 30]}),
    "before the first": ([("skipped", -10, 4)], {"unexpected": [0]}),
    "only before the first": ([("fired", 0, 1)], {"unexpected": [0]}),
    "down for a day": ([("skipped", 10, 86_400_000), ("fired", 864_000_010, 1)], {}),
    "a day is missing": (
        [("fired", 10, 1), ("fired", 864_000_010, 1)],
        {"missing": [20 + STEP * number for number in range(MOST_LISTED)]},
    ),
    "a day beside": (
        [("skipped", 15, 86_400_000)],
        {
            "missing": [10 + STEP * number for number in range(MOST_LISTED)],
            "unexpected": [15 + STEP * number for number in range(MOST_LISTED)],
        },
    ),
    "nothing": ([], {}),
}


def rows(id: str, told: list[Line], *, first: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the evidence of a series from 0 on in steps of STEP."""

    def row(kind: int, offset: int, value: bytes, **more: Any) -> tuple[Any, ...]:
        found: dict[str, Any] = {"asks": None, "interval": None, "start": None, **more}
        place: tuple[Any, ...] = "default", id, 0, kind, "topic", 0, offset, 0, None, value, []
        return *place, found["asks"], found["interval"], found["start"], None, None

    def line(event: str, due: int, count: int) -> bytes:
        fields = {"event": event, "due": due, "at": max(due, 0), "attempt": 1}
        return json.dumps(fields | ({"count": count} if count > 1 else {})).encode()

    lines = told if "start" in first else [("scheduled", 0, 1), *told]
    begin = row(IMPORTED if "start" in first else COMMAND, 0, b"", interval=STEP, **first)
    return [begin, *(row(HISTORY, number, line(*each)) for number, each in enumerate(lines, 1))]


@pytest.mark.usefixtures("compiled_plans")
@pytest.mark.parametrize("first", [{"asks": "schedule"}, {"asks": CARRIED, "start": STEP}], ids=["begun", "carried"])
def test_what_differs_is_found_by_arithmetic_and_nothing_else(spark: SparkSession, first: dict[str, Any]) -> None:
    table = [row for id, (told, _) in CASES.items() for row in rows(id, told, first=first)]
    evidence = spark.createDataFrame(table, COLUMNS)

    found = disagreements(events(evidence, series(evidence)), series(evidence), Bounds(0, 1 << 40, 0)).collect()

    by_id: dict[str, dict[str, list[int]]] = {id: {} for id in CASES}
    for fault in sorted(found, key=lambda row: row.due):
        by_id[fault.id].setdefault(fault["name"], []).append(fault.due)
    assert by_id == {id: expected for id, (_, expected) in CASES.items()}


@pytest.mark.soak
def test_times_outside_of_the_audit_are_not_listed(spark: SparkSession) -> None:
    told = [("fired", 10, 1), ("fired", 864_000_010, 1)]
    evidence = spark.createDataFrame(rows("one", told, first={"asks": "schedule"}), COLUMNS)
    found = disagreements(events(evidence, series(evidence)), series(evidence), Bounds(500_001, 500_030, 0)).collect()
    assert sorted(row.due for row in found) == [500_010, 500_020, 500_030]
    assert {(row.topic, row.offset) for row in found} == {("topic", 1)}, "the line with which the series begins"
