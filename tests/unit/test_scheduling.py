"""How several processes share tests, with pytest itself: what is alone has nobody beside it but what stands back."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from support.scheduling import (
    CAMPAIGN,
    MEASURE_TIMES,
    PURE,
    SECOND_SPARK,
    SPARK,
    SPARK_SESSIONS,
    TAKE_BOTH_CORES,
    share_of,
    unit_of,
)

TESTS = Path(__file__).parents[1]
CONFTEST = """
import os, time
import pytest
from support import scheduling

def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true")

def pytest_xdist_make_scheduler(config, log):
    return scheduling.Scheduling(config, log)

def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: scheduling.turn_of(item.nodeid, with_soaks=True))

@pytest.fixture(autouse=True)
def span(request):
    begun = time.monotonic()
    yield
    with open("spans", "a") as file:
        worker = os.environ["PYTEST_XDIST_WORKER"]
        file.write(f"{request.node.nodeid} {worker} {begun} {time.monotonic()}\\n")
"""
TAKES_A_WHILE = """
import time
import pytest

@pytest.mark.parametrize("number", range(COUNT))
def test(number):
    time.sleep(0.05)
"""
CRASHES = """
    if number == 1:
        import os
        os._exit(1)
"""
FILES = {
    **{f"tests/unit/test_{number}.py": 1 + number for number in range(5)},
    **{f"tests/{folder}/test_one.py": 3 for folder in ("chaos", "integration", "browser", "contract")},
    f"{SPARK}test_one.py": 2,
    f"{SPARK}test_two.py": 2,
    f"{SPARK}load/test_one.py": 2,
    f"{SPARK}load/test_two.py": 2,
    f"{SPARK}test_some_kills.py": 2,
    CAMPAIGN: 12,
    **dict.fromkeys(MEASURE_TIMES, 10),  # as long as a process that is beside them may stand still
    **dict.fromkeys(TAKE_BOTH_CORES, 2),
}


class Span(NamedTuple):
    test: str
    process: str
    begun: float
    ended: float

    def overlaps(self, other: Span) -> bool:
        return self.begun < other.ended and other.begun < self.ended


def run(folder: Path, processes: int, crashing: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the files in so many processes; the second test of some of them ends its process."""
    (folder / "conftest.py").write_text(CONFTEST)
    for name, count in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        crash = CRASHES if name in crashing else ""
        (folder / name).write_text(TAKES_A_WHILE.replace("COUNT", str(count)) + crash)
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--rootdir", ".", "--import-mode=importlib"),
            *("--numprocesses", str(processes), "--no-loadscope-reorder", "--soak"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def spans_in(folder: Path) -> list[Span]:
    lines = [line.split() for line in (folder / "spans").read_text().splitlines()]
    return [Span(test, process, float(begun), float(ended)) for test, process, begun, ended in lines]


@pytest.fixture(params=[pytest.param(count, marks=pytest.mark.soak) for count in (1, 2, 3)], scope="module")
def spans(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Span]:
    """When each test of a run ran, and in which of so many processes."""
    folder = tmp_path_factory.mktemp("run")
    ran = run(folder, request.param)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return spans_in(folder)


def test_each_test_runs_once_and_what_is_alone_has_nobody_beside_it(spans: list[Span]) -> None:
    assert len({span.test for span in spans}) == len(spans) == sum(FILES.values())
    alone = [span for span in spans if span.test.startswith(TAKE_BOTH_CORES)]
    assert len({span.process for span in alone}) == 1
    others = [span for span in spans if span not in alone]
    assert [(one, other) for one, other in product(alone, others) if one.overlaps(other)] == []


def test_beside_what_measures_times_one_process_runs_what_needs_a_core(spans: list[Span]) -> None:
    timed = [span for span in spans if span.test.startswith(MEASURE_TIMES)]
    assert len({span.process for span in timed}) == 1
    beside = {other for one, other in product(timed, spans) if other.process != one.process and one.overlaps(other)}
    assert len({span.process for span in beside}) == min(1, len({span.process for span in spans}) - 1)
    assert [span for span in beside if not span.test.startswith(PURE)] == []


def test_each_spark_session_is_in_one_process(spans: list[Span]) -> None:
    using = [span for span in spans if span.test.startswith(SPARK) and "kills" not in span.test]
    sessions = {(span.test.startswith(SECOND_SPARK), span.process) for span in using}
    assert len(sessions) == SPARK_SESSIONS


def test_there_is_a_unit_for_each_spark_session() -> None:
    names = ("load/test_a.py", "export_import/test_a.py", "test_kafka_a.py", "test_least_rights.py", "test_audit.py")
    units = {unit_of(f"{SPARK}{name}::test", with_soaks=True) for name in names}
    assert len(units) == SPARK_SESSIONS
    assert len({unit_of(f"{SPARK}{name}::test", with_soaks=False) for name in names}) == 1


@pytest.mark.soak
def test_a_process_that_crashes_costs_only_the_test_that_it_ran(tmp_path: Path) -> None:
    ran = run(tmp_path, 2, crashing=("tests/unit/test_3.py", MEASURE_TIMES[0]))

    assert ran.returncode == 1
    assert f"2 failed, {sum(FILES.values()) - 2} passed" in ran.stdout
    assert len({span.test for span in spans_in(tmp_path)}) == sum(FILES.values()) - 2


def test_processes_choose_from_ports_of_their_own() -> None:
    shares = [share_of(range(20_000, 32_000), f"gw{number}", 3) for number in range(3)]
    assert all(len(share) == 4_000 for share in shares)
    assert len(set().union(*shares)) == 12_000
    assert share_of(range(20_000, 32_000), "gw4", 3) == shares[1]
