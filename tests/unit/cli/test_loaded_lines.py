"""Where a load of a file goes on: after the lines that were loaded before, if they are still the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.cli.file_position import FileChangedError, LoadedLines, Position

ROWS = b"id,after\na,1h\nb,1h"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def load(file: Path, content: bytes) -> list[str]:
    """Load what a file has more than before."""
    file.write_bytes(content)
    with LoadedLines(file) as lines:
        rows = list(lines)
        lines.store(lines.here(), sent=len(rows), refused=0)
    return rows


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_lines_added_to_a_file_whose_last_line_had_no_end_are_what_is_left(file: Path, end: bytes) -> None:
    assert len(load(file, ROWS)) == 3
    assert load(file, ROWS) == []
    assert load(file, ROWS + end) == []
    assert load(file, ROWS + end + b"c,1h") == ["c,1h"]
    assert load(file, ROWS + end + b"c,1h" + end + b"d,1h\n") == ["d,1h\n"]
    assert load(file, ROWS + end + b"c,1h" + end + b"d,1h\ne,1h\n") == ["e,1h\n"]


def test_a_carriage_return_gets_its_line_feed(file: Path) -> None:
    load(file, ROWS + b"\r")
    assert load(file, ROWS + b"\r\nc,1h\n") == ["c,1h\n"]


@pytest.mark.parametrize(
    "content",
    [
        ROWS + b"0m\nc,1h\n",
        ROWS + b"\r\r\nc,1h\n",
        ROWS + b" \n",
        ROWS[:-1] + b"\n",
        ROWS[:-1] + b"m\n",
        ROWS.replace(b"a", b"A") + b"\n",
        ROWS.replace(b"\na", b"\r\na") + b"\n",
        ROWS[:-5],
        b"",
    ],
)
def test_a_file_whose_loaded_lines_have_changed_is_not_loaded_on(file: Path, content: bytes) -> None:
    load(file, ROWS)
    with pytest.raises(FileChangedError):
        load(file, content)


def test_a_line_that_had_an_end_keeps_it(file: Path) -> None:
    load(file, ROWS + b"\n")
    for content in (ROWS, ROWS + b"\r\n"):
        with pytest.raises(FileChangedError):
            load(file, content)
    assert load(file, ROWS + b"\n\n") == ["\n"]


def test_lines_are_at_a_position_before_the_end_of_the_last_one_only(file: Path) -> None:
    file.write_bytes(ROWS)
    with LoadedLines(file) as lines:
        list(lines)
        then = lines.here()
    file.write_bytes(ROWS + b"\n\n")
    with LoadedLines(file) as lines:
        lines.end = 3
        list(lines)
        assert lines.is_at(lines.here())
        assert lines.is_at(then)
        assert not lines.is_at(Position(2, then.size, then.sha256))
        lines.end = None
        list(lines)
        assert not lines.is_at(then)
