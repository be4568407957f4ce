"""The commands by which figures are kept, and which of them are still to run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.kept import __main__ as kept
from benchmarks.kept.idle import wait_until_idle
from benchmarks.kept.measurements import MEASUREMENTS, RESULTS, Measurement
from light_scheduler.clock import SystemClock

COMMIT = "0123456789ab"


def test_each_result_has_one_command() -> None:
    names = [each.name for each in MEASUREMENTS]
    assert len(names) == len(set(names))
    assert {file.stem for file in RESULTS.glob("*.json")} <= set(names)


def test_a_command_is_shown_as_one_types_it() -> None:
    prints, writes = Measurement("a", 1, "measure --json"), Measurement("b", 1, "measure --result {result} --fast")
    assert prints.shown == "measure --json > benchmarks/results/a.json"
    assert writes.shown == "measure --result benchmarks/results/b.json --fast"


@pytest.mark.parametrize(
    ("code", "left"), [("print('{\"of\": 2}')", 2), ("print('{\"of\": 2}'); raise SystemExit(1)", 1)]
)
def test_a_result_is_replaced_only_by_a_command_that_has_succeeded(code: str, left: int, tmp_path: Path) -> None:
    result, program = tmp_path / "a.json", tmp_path / "program.py"
    result.write_text('{"of": 1}')
    program.write_text(code)
    assert kept.measured(Measurement("a", 1, f"{sys.executable} {program}"), result) == (left == 2)
    assert json.loads(result.read_text())["of"] == left
    assert sorted(tmp_path.iterdir()) == [result, program]


def test_what_a_command_prints_is_no_result_if_it_writes_that_itself(tmp_path: Path) -> None:
    result, program = tmp_path / "a.json", tmp_path / "program.py"
    program.write_text("import pathlib, sys; print('a table'); pathlib.Path(sys.argv[1]).write_text('{\"of\": 2}')")
    assert kept.measured(Measurement("a", 1, f"{sys.executable} {program} {{result}}"), result)
    assert json.loads(result.read_text())["of"] == 2


def test_a_result_names_its_command_and_when_that_began(tmp_path: Path) -> None:
    result, program = tmp_path / "a.json", tmp_path / "program.py"
    program.write_text("print('{}')")
    measurement, before = Measurement("a", 1, f"{sys.executable} {program}"), SystemClock().now()
    assert kept.measured(measurement, result)
    document = json.loads(result.read_text())
    assert document["command"] == measurement.shown
    assert before <= document["at"] <= SystemClock().now()


def test_a_command_measures_the_tree_that_it_is_started_from(tmp_path: Path) -> None:
    result, program = tmp_path / "a.json", tmp_path / "program.py"
    program.write_text("import json, light_scheduler; print(json.dumps({'of': light_scheduler.__file__}))")
    assert kept.measured(Measurement("a", 1, f"python {program}"), result)
    assert Path(json.loads(result.read_text())["of"]).parents[1] == kept.ROOT


class TestIdleness:
    def test_nothing_is_waited_for_on_an_idle_machine(self, capsys: pytest.CaptureFixture[str]) -> None:
        wait_until_idle(lambda: 0.1)
        assert capsys.readouterr().err == ""

    def test_a_command_waits_until_the_load_has_fallen(self, capsys: pytest.CaptureFixture[str]) -> None:
        loads = iter([3.21, 0.2, 0.19])
        wait_until_idle(lambda: next(loads))
        assert next(loads, None) is None
        waiting, waited = capsys.readouterr().err.splitlines()
        assert waiting == "waiting until the load is below 0.2, at most 300 s: it is 3.2"
        assert waited == "waited for 0 s"

    def test_a_machine_that_stays_busy_is_measured_all_the_same(self, capsys: pytest.CaptureFixture[str]) -> None:
        wait_until_idle(lambda: 3.21, at_most_s=0)
        assert capsys.readouterr().err.splitlines()[-1] == "the machine is still busy after 0 s: the load is 3.2"


@pytest.mark.parametrize(
    ("document", "current", "is_measured"),
    [
        ({"versions": {"commit": COMMIT}}, COMMIT, True),
        ({"versions": {"commit": COMMIT}}, "ba9876543210", False),
        ({"versions": {"commit": f"{COMMIT}-dirty"}}, f"{COMMIT}-dirty", False),
        ({"versions": {}}, COMMIT, False),
        ({}, COMMIT, False),
        ({}, None, False),
        (None, COMMIT, False),
    ],
)
def test_what_is_of_this_commit_is_not_measured_again(
    document: dict[str, object] | None, current: str | None, is_measured: bool, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    if document is not None:
        file.write_text(json.dumps(document))
    assert kept.is_of(file, current) == is_measured


def test_a_list_names_the_commit_of_each_result_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    left = Measurement("never-measured", 5, "measure")
    kept.show([MEASUREMENTS[0], left], [left])
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.split()[0] == MEASUREMENTS[0].name
    assert " measured " in first
    assert second.split() == ["never-measured", "not", "measured", "to", "measure", "5", "min"]
    assert last == "to measure: 1 results, about 5 min"
