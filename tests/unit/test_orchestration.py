"""The examples for Airflow and Dagster, which are not installed here: the program takes the commands in them."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from support.documented import parse_call

from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "orchestration"
FILES = sorted(FOLDER.glob("*.py"))
COMMAND = "light-scheduler "
OPTIONS = "--"
TEMPLATE = re.compile(r"\{\{.*?\}\}")


def texts(path: Path) -> list[str]:
    """Return the texts of a file that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [str(node.value) for node in nodes]


def test_there_is_one_for_airflow_and_one_for_dagster() -> None:
    assert [path.name for path in FILES] == ["airflow_dag.py", "dagster_jobs.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_is_one_that_the_program_takes(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = texts(path)
    commands = [text for text in found if text.startswith(COMMAND)]
    (more,) = [text for text in found if text.startswith(OPTIONS)]
    assert {shlex.split(command)[2] for command in commands} >= {"archive", "audit", "report"}
    for command in commands:
        words = shlex.split(TEMPLATE.sub("job", f"{command} {more}").replace("/var/lib/node_exporter", str(tmp_path)))
        parse_call(words[1:])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_setting_is_one(path: Path) -> None:

    variables = [text for text in texts(path) if text.startswith(ENVIRONMENT_PREFIX)]
    named = {variable.removeprefix(ENVIRONMENT_PREFIX).lower() for variable in variables}
    assert named <= {each.name for each in fields(Settings)}


def test_airflow_does_not_try_again_what_tells_of_faults_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = MagicMock()
    package = "airflow.providers.standard.operators"
    for module in ("airflow", "airflow.sdk", "airflow.providers", "airflow.providers.standard", package):
        monkeypatch.setitem(sys.modules, module, MagicMock())
    monkeypatch.setitem(sys.modules, f"{package}.bash", MagicMock(BashOperator=operator))

    runpy.run_path(str(FOLDER / "airflow_dag.py"))

    retries = {call.kwargs["task_id"]: call.kwargs["retries"] for call in operator.call_args_list}
    assert retries == {"load": 0, "archive": 2, "audit": 0, "report": 2}
