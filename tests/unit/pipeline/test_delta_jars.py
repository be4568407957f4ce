"""Delta Lake comes in two halves, a Python package and jars."""

from __future__ import annotations

from importlib import metadata

from light_scheduler.pipeline.delta_jars import DELTA


def test_the_jars_are_of_the_version_of_the_python_package() -> None:
    assert {coordinate.rpartition(":")[2] for coordinate in DELTA.coordinates} == {metadata.version("delta-spark")}
