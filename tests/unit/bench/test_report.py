"""The page of results: made from them, all of them, and of which commit they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.kept.measurements import MEASUREMENTS, RESULTS
from benchmarks.report import sentences
from benchmarks.report.markdown import median, number, size, spread, table
from benchmarks.report.page import ABOUT, TABLES, filled, names_in, results_of
from benchmarks.report.results import Figure, Results
from benchmarks.report.tables.bars import BARS, Bar
from benchmarks.report.tables.failures import upper_bound

PAGE = RESULTS.parent / "README.md"


def page_of(*names: str) -> str:
    return "\n".join(f"<!-- made: {name} -->\n<!-- end -->\n" for name in names)


def change(result: Path, **members: object) -> None:
    result.write_text(json.dumps({**json.loads(result.read_text()), **members}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two results, both of one commit and machine, which was busy before the first one."""
    for name, load in (("ingest", 1.7), ("burst", 0.4)):
        document = json.loads((RESULTS / f"{name}.json").read_text())
        document["versions"]["commit"] = "0123456789ab"
        document["machine"] |= {"cpu": "Usual", "load_before": load}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    return tmp_path


class TestPage:
    def test_it_agrees_with_the_results(self) -> None:
        text = PAGE.read_text(encoding="utf-8")
        assert filled(text, RESULTS) == text, "run `python -m benchmarks.report`"

    def test_it_has_each_part_once(self) -> None:
        assert sorted(names_in(PAGE.read_text(encoding="utf-8"))) == sorted([*ABOUT, *TABLES])

    def test_each_result_is_in_a_table_and_each_table_is_of_results_with_a_command(self) -> None:
        assert set().union(*(results_of(part, RESULTS) for part in TABLES.values())) == {
            each.name for each in MEASUREMENTS
        }

    def test_a_result_that_is_not_there_has_the_size_that_its_command_names(self, tmp_path: Path) -> None:
        assert "| pending | 1,000,000 | 10,000,000 |" in filled(page_of("recovery"), tmp_path)

    def test_a_part_of_an_unknown_name_is_refused(self) -> None:
        with pytest.raises(KeyError, match="no-such"):
            filled(page_of("no-such"), RESULTS)

    def test_what_stands_outside_of_the_markers_is_kept(self) -> None:
        made = filled(f"before\n{page_of('hours')}after\n", RESULTS)
        assert re.fullmatch(r"before\n<!-- made: hours -->\n\nAll .*\n\n<!-- end -->\nafter\n", made)

    def test_parts_are_made_without_any_result(self, tmp_path: Path) -> None:
        made = filled(page_of(*ABOUT, *TABLES), tmp_path)
        assert made.count("not measured") > len(TABLES)
        assert "why" not in made


class TestCommits:
    def test_one_commit_is_named_once(self, folder: Path) -> None:
        made = filled(page_of("origin", "throughput"), folder)
        assert made.startswith("<!-- made: origin -->\n\nAll results are of commit `0123456789ab`.\n")
        assert made.count("0123456789ab") == 2  # in the first sentence, and in the table below it

    def test_each_table_names_its_commits_if_they_differ(self, folder: Path) -> None:
        other = json.loads((folder / "burst.json").read_text())
        other["versions"]["commit"] = "ba9876543210"
        (folder / "burst.json").write_text(json.dumps(other))
        made = filled(page_of("origin", "throughput"), folder)
        assert "All results" not in made
        assert (
            made.rstrip()
            .splitlines()[-3]
            .endswith(
                "(1.7, busy machine): commit `0123456789ab`; [burst](results/burst.json) (0.4): commit `ba9876543210`;"
                " burst-million: not measured."
            )
        )

    def test_a_result_without_a_commit_is_one_of_another_commit(self, folder: Path) -> None:
        other = json.loads((folder / "burst.json").read_text())
        del other["versions"]["commit"]
        (folder / "burst.json").write_text(json.dumps(other))
        assert "(0.4): commit not recorded" in filled(page_of("throughput"), folder)

    def test_the_day_is_named_of_a_result_whose_commit_is_not_recorded(self, folder: Path) -> None:
        change(folder / "burst.json", at=1_795_789_242_549, versions={})
        assert "| not recorded, measured on 2026-11-27 | not recorded |" in filled(page_of("origin"), folder)


class TestRemarks:
    def test_a_result_of_a_busy_machine_is_marked(self, folder: Path) -> None:
        made = filled(page_of("throughput"), folder)
        assert "[ingest](results/ingest.json) (1.7, busy machine)" in made
        assert "[burst](results/burst.json) (0.4)" in made

    def test_a_result_of_another_command_is_marked_beside_its_figures_and_beside_the_command(
        self, folder: Path
    ) -> None:
        (known,) = (each for each in MEASUREMENTS if each.name == "burst")
        change(folder / "burst.json", command=known.shown)
        assert "another command" not in filled(page_of("throughput", "commands", "bars"), folder)
        change(folder / "burst.json", command=f"{known.shown} --fast")
        made = filled(page_of("throughput", "commands", "bars"), folder)
        assert made.count("made by another command") == 4  # beside the bar and below its table, too
        assert "| [burst](results/burst.json) (made by another command) |" in made

    def test_a_processor_that_is_not_the_usual_one_is_named(self, folder: Path) -> None:
        for name in ("fair", "memory"):
            (folder / f"{name}.json").write_text((folder / "burst.json").read_text())
        document = json.loads((folder / "burst.json").read_text())
        change(folder / "burst.json", machine={**document["machine"], "cpu": "Other"})
        made = filled(page_of("throughput"), folder)
        assert "(0.4, on another machine: Other)" in made
        assert made.count("another machine") == 1

    def test_a_note_of_a_result_is_shown(self, folder: Path) -> None:
        change(folder / "burst.json", note="of an earlier version")
        assert "(0.4, of an earlier version)" in filled(page_of("throughput"), folder)


class TestBars:
    @pytest.mark.parametrize(
        ("value", "is_least", "reached"),
        [(1.0, False, True), (1.1, False, False), (1.0, True, True), (0.9, True, False)],
    )
    def test_a_bar_is_reached_or_explained(self, folder: Path, value: float, is_least: bool, reached: bool) -> None:
        bar = Bar("a bar", 1, "burst", lambda *_: value, "a-section", " s", 1, is_least=is_least)
        bound = "at least 1.0 s" if is_least else "at most 1.0 s"
        said = "reached" if reached else "not reached: [why](EXPERIMENTS.md#a-section)"
        assert bar.row(Results(folder)) == ["a bar", bound, f"{value} s", said]

    @pytest.mark.parametrize(("value", "shown"), [(1.051, "1.051"), (1.0504, "1.0504"), (1.05, "1.05"), (1.06, "1.06")])
    def test_a_value_is_told_from_its_limit(self, folder: Path, value: float, shown: str) -> None:
        assert Bar("a bar", 1.05, "burst", lambda *_: value, "a-section").row(Results(folder))[2] == shown

    def test_one_that_is_not_measured_says_what_is_known(self, tmp_path: Path) -> None:
        bar = Bar("a bar", 1, "burst", lambda *_: None, "a-section", last_known=1.1)
        known = "not measured; last known: [1.10](EXPERIMENTS.md#a-section)"
        assert bar.row(Results(tmp_path))[2:] == [known, "then not reached"]
        assert bar._replace(last_known=0.9).row(Results(tmp_path))[-1] == "then reached"
        assert bar._replace(last_known=None).row(Results(tmp_path))[2:] == ["not measured", ""]

    def test_each_is_explained_in_a_section_that_exists(self) -> None:
        text = (RESULTS.parent / "EXPERIMENTS.md").read_text(encoding="utf-8")
        titles = re.findall(r"^##+ (.*)$", text, re.MULTILINE)
        assert {bar.explained for bar in BARS} <= {title.lower().replace(" ", "-") for title in titles}


class TestText:
    @pytest.mark.parametrize(
        ("value", "digits", "text"),
        [(1234.5, 0, "1,235"), (0.25, 1, "0.3"), (6.55, 1, "6.6"), (0, 2, "0.00"), (None, 1, "not measured")],
    )
    def test_a_number_is_rounded_half_up(self, value: float | None, digits: int, text: str) -> None:
        assert number(value, digits) == text

    def test_a_figure_of_several_rounds_has_its_extremes(self) -> None:
        assert spread(Figure(2, 1, 3), 1) == "2.0 (1.0 to 3.0)"
        assert spread(Figure(2, 2, 2), 1) == median(Figure(2, 1, 3), 1) == "2.0"

    def test_bytes_have_a_unit_that_fits(self) -> None:
        assert [size(Figure(*[each] * 3)) for each in (5e8, 2.5e9)] == ["500 MB", "2.5 GB"]

    def test_a_table_has_a_line_below_its_head(self) -> None:
        assert table(["", "b"], [["c", "d"]]) == "| | b |\n|---|---|\n| c | d |"


def test_the_failure_rate_of_one_seed_is_the_one_that_its_run_found() -> None:
    found = Results(RESULTS).figure("chaos-71", "failure_rate_upper_bound")
    assert found is not None
    assert upper_bound(Results(RESULTS), ["chaos-71"]) == pytest.approx(found.median * 1e6)


class TestSentences:
    @pytest.mark.parametrize("page", sentences.PAGES)
    def test_their_figures_are_those_of_the_results(self, page: str) -> None:
        text = (RESULTS.parents[1] / page).read_text(encoding="utf-8")
        assert sentences.filled(page, text, RESULTS) == text, "run `python -m benchmarks.report`"

    def test_figures_take_their_places_and_the_rest_stays(self, tmp_path: Path) -> None:
        figures = {"firings_per_s": 44_394.4, "lateness_p99_ms": 502}
        (tmp_path / "fair.json").write_text(json.dumps({"figures": figures}))
        before = "delivered firings of one tenant at 1 per second, another tenant's 100\nfirings per second had "
        text = sentences.filled("docs/burst-control.md", f"{before}a p99 lateness of 2 s.\n", tmp_path)
        assert text == before.replace("at 1 per", "at 44,000 per") + "a p99 lateness of 0.5 s.\n"

    @pytest.mark.parametrize("page", sentences.PAGES)
    def test_what_was_not_measured_is_said_until_it_is(self, page: str, tmp_path: Path) -> None:
        text = (RESULTS.parents[1] / page).read_text(encoding="utf-8")
        without = sentences.filled(page, text, tmp_path)
        assert "not measured" in without
        assert sentences.filled(page, without, RESULTS) == text

    def test_a_page_without_its_sentence_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(LookupError, match=r"docs/outbox\.md has no sentence"):
            sentences.filled("docs/outbox.md", "other words", tmp_path)
