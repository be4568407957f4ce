"""What the script that takes the pictures of the dashboard says before it starts anything."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from scripts.screenshots import parser, working_folder


def test_a_picture_that_there_is_none_of_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["docs", "--only", "schedules", "health"]).only == ["schedules", "health"]
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["docs", "--only", "schedules", "helth"])
    assert ended.value.code == 2
    assert "invalid choice: 'helth'" in capsys.readouterr().err


def test_a_folder_that_was_left_behind_is_named_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with working_folder() as folder:
        with pytest.raises(SystemExit, match="is there already"), working_folder():
            pass
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []
