"""A tree compared with another commit: pairs of the same round, and the files of that commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.against.__main__ import ROOT, ratios, write_tree


def test_rounds_are_compared_in_pairs() -> None:
    found = ratios([{"cpu": {"this": 3.0, "other": 4.0}}, {"cpu": {"other": 8.0, "this": 10.0}}])
    assert found == {"cpu_ratio": {"median": 1.0, "min": 0.75, "max": 1.25, "unit": "1"}}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the files are no checkout")
def test_the_files_of_a_commit_are_written_with_their_links(tmp_path: Path) -> None:
    write_tree("HEAD", tmp_path)
    assert (tmp_path / "light_scheduler" / "tables" / "__init__.py").is_file()
    assert (tmp_path / "light_scheduler" / "tables").is_symlink()
