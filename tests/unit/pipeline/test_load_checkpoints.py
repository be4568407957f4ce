"""Where a load keeps its position in the folder that Spark is configured with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.load.checkpoints import place_in
from light_scheduler.pipeline.load.options import LoadOptions

LOAD = LoadOptions(
    table="in",
    cluster=Cluster("kafka:9092"),
    commands_topic="commands",
    marks_topic="loads",
    format="csv",
    constants={"target-topic": "t"},
    ignored=("remark", "note"),
    reading={"sep": ";", "header": "true"},
)


def place(table: str = "/in", cluster: str = "id", **other: Any) -> str:
    return place_in("/checkpoints", replace(LOAD, **other), table, cluster)


def test_a_load_has_one_place_however_its_folder_options_and_brokers_are_written() -> None:
    assert place().startswith("/checkpoints/light-scheduler-load-")
    same = replace(
        LOAD, cluster=Cluster("b:1,a:1"), reading={"HEADER": "true", "sep": ";"}, ignored=("note", "remark"), every_s=9
    )
    assert place_in("/checkpoints/", same, "file:///in/", "id") == place()


@pytest.mark.parametrize(
    "other",
    [
        {"name": "another"},
        {"commands_topic": "others"},
        {"marks_topic": "other-loads"},
        {"cluster": "another"},
        {"constants": {"target-topic": "u"}},
        {"table": "/in/more"},
        {"format": "json"},
        {"ignored": ("remark",)},
        {"sends_past": True},
        {"reading": {"sep": ";", "header": "true", "pathGlobFilter": "*.csv"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_load_of_something_else_has_another_place(other: dict[str, Any]) -> None:
    assert place(**other) != place()
