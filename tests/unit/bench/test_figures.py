"""Figures over rounds, percentiles, and the document that a run comes to."""

from __future__ import annotations

import json
import math
import platform
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from light_scheduler.bench.document import Document
from light_scheduler.bench.figures import UNITS, Figure, has_faults, p99_by_second, percentile, summarised
from light_scheduler.bench.machine import commit_of, cpu_model, machine, python_build, versions
from light_scheduler.bench.options import Options
from light_scheduler.bench.table import number_text, table_of


def document(**figures: Figure) -> Document:
    return Document(
        scenario="ingest",
        settings=Options(messages=2_000, partitions=4, payload_bytes=200, repeat=3, seed=1),
        machine={"cpu": "a processor", "cores": 2, "load_before": 0.5},
        versions={"kafka": "4.3.1", "python": "3.11.7"},
        figures=figures,
    )


class TestSummary:
    def test_a_figure_has_median_extremes_and_its_unit(self) -> None:
        rounds = [{"accepted_per_s": 30.0}, {"accepted_per_s": 10.0}, {"accepted_per_s": 40.0}]
        assert summarised(rounds) == {"accepted_per_s": Figure(30.0, 10.0, 40.0, "1/s")}

    def test_of_an_even_number_of_rounds_the_median_lies_between_the_middle_two(self) -> None:
        assert summarised([{"early": 1}, {"early": 4}])["early"].median == 2.5

    def test_a_figure_that_some_rounds_lack_is_made_of_those_that_have_it(self) -> None:
        rounds: list[dict[str, float]] = [{"missing": 0}, {"missing": 0, "worker_cpu_us_per_event": 12.0}]
        assert summarised(rounds)["worker_cpu_us_per_event"] == Figure(12.0, 12.0, 12.0, "us")

    def test_figures_come_in_the_order_of_their_declaration(self) -> None:
        everything = dict.fromkeys(reversed(UNITS), 1.0)
        assert list(summarised([everything])) == list(UNITS)

    def test_a_figure_without_a_unit_is_an_error(self) -> None:
        with pytest.raises(KeyError, match="speed"):
            summarised([{"speed": 1.0}])


class TestPercentile:
    @pytest.mark.parametrize(("percent", "expected"), [(1, 1), (50, 50), (99, 99), (99.5, 100), (100, 100)], ids=str)
    def test_it_is_the_value_of_the_nearest_rank(self, percent: float, expected: int) -> None:
        assert percentile(range(1, 101), percent) == expected

    def test_of_one_value_it_is_that_value(self) -> None:
        assert percentile([7], 50) == percentile([7], 99) == 7

    def test_the_lateness_of_each_second_is_that_of_what_was_due_in_it(self) -> None:
        on_time = [(1_000 + number, 1) for number in range(1_000)]
        late = [(3_000 + number, 900 if number >= 980 else 2) for number in range(1_000)]
        assert p99_by_second([*late, *on_time]) == {1: 1, 3: 900}
        assert p99_by_second([]) == {}

    def test_it_holds_its_definition(self) -> None:
        ordered = [0, 0, 1, 5, 5, 5, 9, 12]
        for percent in range(1, 101):
            found = percentile(ordered, percent)
            assert sum(value <= found for value in ordered) >= math.ceil(len(ordered) * percent / 100)

    def test_of_nothing_there_is_none(self) -> None:
        with pytest.raises(ValueError, match="nothing"):
            percentile([], 50)


class TestFaults:
    @pytest.mark.parametrize("name", ["missing", "duplicate", "early"])
    def test_one_fault_in_one_round_of_many_counts(self, name: str) -> None:
        figures = summarised([{name: 0}, {name: 0}, {name: 1}])
        assert figures[name].median == 0
        assert has_faults(figures)
        assert document(**figures).has_faults

    def test_a_schedule_too_many_is_a_fault_like_one_too_few(self) -> None:
        assert has_faults(summarised([{"missing": -1}, {"missing": 0}]))

    def test_without_faults_there_are_none(self) -> None:
        assert not has_faults(summarised([{"missing": 0, "duplicate": 0, "early": 0, "lateness_max_ms": 900}]))


class TestDocument:
    def test_it_has_exactly_the_members_that_scripts_rely_on(self) -> None:
        shown = json.loads(document(early=Figure(0, 0, 0, "count")).as_json())
        assert list(shown) == ["scenario", "settings", "machine", "versions", "figures"]
        assert shown["figures"] == {"early": {"median": 0, "min": 0, "max": 0, "unit": "count"}}
        assert shown["settings"] == {"messages": 2_000, "partitions": 4, "payload_bytes": 200, "repeat": 3, "seed": 1}

    def test_the_table_shows_every_figure(self) -> None:
        console = Console(width=200)
        with console.capture() as captured:
            console.print(table_of(document(**summarised([dict.fromkeys(UNITS, 12_345.0)]))))
        text = captured.get()
        for name in UNITS:
            assert name in text
        assert "12,345" in text

    @pytest.mark.parametrize(
        ("number", "text"),
        [(61_234.4, "61,234"), (0.0, "0"), (15.34, "15.3"), (0.408, "0.41"), (3.0, "3"), (1.92e-6, "1.9e-06")],
    )
    def test_numbers_have_as_many_digits_as_tell_something(self, number: float, text: str) -> None:
        assert number_text(number) == text


class TestMachine:
    def test_it_says_what_figures_depend_on_and_not_whose_it_is(self) -> None:
        described = machine()
        assert set(described) == {"cpu", "architecture", "cores", "memory_bytes", "system", "load_before"}
        assert described["cores"] >= 1
        assert described["memory_bytes"] > 1 << 28

    def test_versions_name_what_the_hot_path_is_made_of(self) -> None:
        assert {"python", "kafka", "light-scheduler", "faust-streaming", "aiokafka", "rocksdict"} <= set(versions())

    def test_versions_name_the_build_of_python_and_the_commit_of_a_checkout(self) -> None:
        found = versions()
        assert found["python_build"].startswith(platform.python_compiler())
        assert ("commit" in found) == (Path(__file__).parents[3] / ".git").exists()
        assert python_build("GCC 1", "'--enable-optimizations' '--with-lto'") == "GCC 1, with optimisation by profile"
        assert python_build("GCC 1", "") == "GCC 1, without optimisation by profile"

    @pytest.mark.parametrize(
        "measured",
        [
            *("light_scheduler/clock.py", "agents/lanes.py", "tables/restore.py"),
            *("benchmarks/instants.py", "pyproject.toml", "requirements.lock"),
        ],
    )
    def test_only_what_is_measured_makes_another_commit(self, tmp_path: Path, measured: str) -> None:
        code = tmp_path / measured
        others = [
            tmp_path / name
            for name in (
                *("benchmarks/results/a.json", "benchmarks/README.md", "benchmarks/EXPERIMENTS.md"),
                *("benchmarks/report/page.py", "benchmarks/plots.py", "docs/page.md", "tests/test_one.py"),
            )
        ]
        git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
        for file in (code, *others):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("1")
        for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "a")):
            subprocess.run((*git, *command), check=True)
        commit = commit_of(tmp_path)
        assert commit is not None
        assert len(commit) == 12
        for file in (*others, tmp_path / "untracked"):
            file.write_text("2")
        assert commit_of(tmp_path) == commit
        subprocess.run((*git, "commit", "--quiet", "--all", "--message", "results"), check=True)
        assert commit_of(tmp_path) == commit
        code.write_text("2")
        assert commit_of(tmp_path) == f"{commit}-dirty"
        subprocess.run((*git, "commit", "--quiet", "--all", "--message", "code"), check=True)
        assert commit_of(tmp_path) not in (None, commit)
        assert commit_of(tmp_path / "tests") is None

    def test_the_processor_is_the_first_that_the_system_names(self) -> None:
        assert cpu_model("processor\t: 0\nmodel name\t: Fast: 3 GHz\n\nprocessor\t: 1\nmodel name\t: Slow\n") == (
            "Fast: 3 GHz"
        )
        assert cpu_model("processor : 0\n") == "unknown"
