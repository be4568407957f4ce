"""What the doctor says of the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.doctor.machine_checks import check_disk


@pytest.mark.parametrize(("folder", "can_be"), [(".", "written"), ("new", "created"), ("new/state", "created")])
def test_a_folder_that_is_there_can_be_written_and_another_created_also_if_it_is_relative(
    folder: str, can_be: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (Path(folder), tmp_path / folder):
        check, _ = check_disk(given)
        assert (check.status, check.detail) == ("ok", f"{given.absolute()} can be {can_be}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_looked_for_fails(tmp_path: Path) -> None:
    """As one in a folder that this user may not search; for root, a name that is too long has to do."""
    folder = tmp_path / ("x" * 300)
    (check,) = check_disk(folder)
    assert (check.name, check.status) == ("data folder", "fail")
    assert check.detail == f"{folder} cannot be written: File name too long"
    assert check.fix is not None
    assert "--data-dir" in check.fix


def test_a_folder_below_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (check,) = check_disk(tmp_path / "file" / "state")
    assert (check.status, check.detail) == ("fail", f"{tmp_path / 'file'} cannot be written: Not a directory")
