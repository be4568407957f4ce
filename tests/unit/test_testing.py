"""The pytest plugin is there for those who ask for it, and for nobody else."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

USES = """
def test_it(light_scheduler_kafka):
    assert light_scheduler_kafka.bootstrap_servers == "127.0.0.1:9"
"""
OPTS_IN = 'pytest_plugins = ["light_scheduler.testing"]'


def ran(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", *arguments, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    ).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(USES)
    return tmp_path


def test_nothing_is_loaded_into_tests_that_do_not_ask(folder: Path) -> None:
    assert "fixture 'light_scheduler_kafka' not found" in ran(folder)
    assert not [entry for entry in entry_points(group="pytest11") if "light_scheduler" in entry.value]


@pytest.mark.parametrize("way", ["conftest", "option"])
def test_those_who_ask_have_the_fixture(folder: Path, way: str) -> None:
    arguments = ["--light-scheduler-kafka", "127.0.0.1:9"]
    if way == "conftest":
        (folder / "conftest.py").write_text(OPTS_IN)
    else:
        arguments += ["-p", "light_scheduler.testing"]
    assert "1 passed" in ran(folder, *arguments)
