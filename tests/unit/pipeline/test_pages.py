"""Where reports go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.pages import write_page


@pytest.mark.parametrize("by_url", [False, True], ids=["by its path", "by its URL"])
def test_a_page_is_written_with_the_folders_that_it_needs(by_url: bool, tmp_path: Path) -> None:
    path = tmp_path / "new" / "a page.html"
    write_page(path.as_uri() if by_url else str(path), "<p>ü</p>")
    assert path.read_bytes() == "<p>ü</p>".encode()


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(JobError, match=r"the report cannot be written to file:///.*/page.html"):
        write_page((tmp_path / "page.html").as_uri(), "")


@pytest.mark.parametrize("module", ["audit.verdict_table", "load.task", "forecast", "report"])
def test_executors_do_not_import_what_plots_are_made_with(module: str) -> None:
    script = f"import sys, light_scheduler.pipeline.{module}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pyarrow" in ran.stdout.split()
    assert "matplotlib" not in ran.stdout.split()
