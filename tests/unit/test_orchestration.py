"""The examples for Airflow and Dagster, which are not installed here: the program takes the commands in them."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any
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


class Airflow:
    """What the example asks of Airflow."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.dag = MagicMock()
        self.tasks: dict[str, MagicMock] = {}
        package = "airflow.providers.standard.operators"
        for module in ("airflow", "airflow.providers", "airflow.providers.standard", package):
            patch.setitem(sys.modules, module, MagicMock())
        patch.setitem(sys.modules, "airflow.sdk", MagicMock(DAG=self.dag))
        patch.setitem(sys.modules, f"{package}.bash", MagicMock(BashOperator=self._operator))
        runpy.run_path(str(FOLDER / "airflow_dag.py"))

    def _operator(self, **given: Any) -> MagicMock:
        self.tasks[given["task_id"]] = MagicMock(given=given)
        return self.tasks[given["task_id"]]


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    return Airflow(monkeypatch)


def test_airflow_does_not_try_again_what_tells_of_faults_only_once(airflow: Airflow) -> None:
    retries = {name: task.given["retries"] for name, task in airflow.tasks.items()}
    assert retries == {"load": 0, "archive": 2, "audit": 0, "report": 2}


def test_airflow_runs_one_of_each_job_at_a_time_and_reports_on_what_is_archived(airflow: Airflow) -> None:
    assert [call.kwargs["max_active_runs"] for call in airflow.dag.call_args_list] == [1, 1]
    airflow.tasks["archive"].__rshift__.assert_called_once_with(airflow.tasks["report"])


def test_airflow_gives_each_job_its_settings_besides_the_environment_and_its_own_metrics(airflow: Airflow) -> None:
    for task in airflow.tasks.values():
        assert task.given["append_env"], "a job needs PATH and JAVA_HOME, too"
        assert f"{ENVIRONMENT_PREFIX}BROKER" in task.given["env"]
        assert "/{{ task.task_id }}.prom" in task.given["bash_command"]


class Dagster:
    """What the example asks of Dagster: assets are their functions."""

    class Failure(Exception):
        pass

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.deps: dict[str, list[str]] = {}
        module = MagicMock(Failure=self.Failure, asset=self._asset, MaterializeResult=dict)
        patch.setitem(sys.modules, "dagster", module)
        self.example = runpy.run_path(str(FOLDER / "dagster_jobs.py"))
        self.executor = module.Definitions.call_args.kwargs["executor"]
        self.one_at_a_time = module.in_process_executor

    def _asset(self, function: Any = None, *, deps: Sequence[Any] = ()) -> Any:
        if function is None:
            return lambda function: self._asset(function, deps=deps)
        self.deps[function.__name__] = [each.__name__ for each in deps]
        return function


@pytest.fixture
def dagster(monkeypatch: pytest.MonkeyPatch) -> Dagster:
    return Dagster(monkeypatch)


def test_dagster_runs_one_job_at_a_time_and_reports_on_what_is_archived(dagster: Dagster) -> None:
    assert dagster.deps == {"archive": [], "lateness": ["archive"], "faults": []}
    assert dagster.executor is dagster.one_at_a_time


@pytest.mark.parametrize("asset", ["archive", "lateness", "faults"])
def test_an_asset_of_dagster_has_the_numbers_of_its_job_and_fails_with_it(
    dagster: Dagster, monkeypatch: pytest.MonkeyPatch, asset: str
) -> None:
    ended = subprocess.CompletedProcess([], 0, '{"records": 3, "kinds": [], "path": "/data"}', "")
    asked = MagicMock(return_value=ended)
    monkeypatch.setattr(subprocess, "run", asked)
    assert dagster.example[asset](MagicMock()) == {"metadata": {"records": 3, "path": "/data"}}
    (words,) = asked.call_args.args
    assert (words[0], words[-1]) == ("light-scheduler", "--json")
    parse_call(words[1:])
    ended.returncode = 1
    with pytest.raises(Dagster.Failure, match="exit code 1"):
        dagster.example[asset](MagicMock())
