"""Files of the micro-batches of a stream, as its checkpoint has them."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.load.copies import later_ones
from light_scheduler.pipeline.load.stream_files import LocalCheckpoint, files_of


def planned(checkpoint: Path, batch: int, look: int) -> None:
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{look}}}')


def noted(checkpoint: Path, name: str, *files: tuple[str, int]) -> None:
    (folder := checkpoint / "sources" / "0").mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": path, "timestamp": 1, "batchId": look}) for path, look in files]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_a_micro_batch_has_the_files_of_all_looks_since_the_one_before(tmp_path: Path) -> None:
    planned(tmp_path, 0, 0)
    planned(tmp_path, 1, 2)  # a run was killed between a look and the plan of its batch
    noted(tmp_path, "0", ("file:///in/a%20b", 0), ("file:///in/c", 0))
    noted(tmp_path, "1", ("file:///in/d", 1))
    noted(tmp_path, "2", ("file:///in/e", 2))
    checkpoint = LocalCheckpoint(tmp_path)
    assert files_of(checkpoint, 0) == ["file:///in/a%20b", "file:///in/c"]
    assert files_of(checkpoint, 1) == ["file:///in/d", "file:///in/e"]


def test_a_look_that_is_compacted_has_files_of_earlier_ones_too(tmp_path: Path) -> None:
    planned(tmp_path, 8, 8)
    planned(tmp_path, 9, 9)
    noted(tmp_path, "9.compact", ("file:///in/a", 0), ("file:///in/b", 8), ("file:///in/c", 9))
    assert files_of(LocalCheckpoint(tmp_path), 9) == ["file:///in/c"]


def test_the_files_of_all_looks_are_not_held_in_memory(tmp_path: Path) -> None:
    planned(tmp_path, 8, 8)
    planned(tmp_path, 9, 9)
    earlier = [(f"file:///in/{number}", number % 9) for number in range(20_000)]
    noted(tmp_path, "9.compact", *earlier, ("file:///in/c", 9))
    tracemalloc.start()
    try:
        assert files_of(LocalCheckpoint(tmp_path), 9) == ["file:///in/c"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (tmp_path / "sources" / "0" / "9.compact").stat().st_size / 4


@pytest.mark.parametrize("missing", ["offsets/0", "offsets/1", "sources/0/1"])
def test_what_is_not_known_is_an_error(tmp_path: Path, missing: str) -> None:
    for number in (0, 1):
        planned(tmp_path, number, number)
        noted(tmp_path, str(number), (f"file:///in/{number}", number))
    (tmp_path / missing).unlink()
    with pytest.raises(JobError, match="another --checkpoint"):
        files_of(LocalCheckpoint(tmp_path), 1)


def test_of_files_with_the_same_content_all_but_the_first_are_later() -> None:
    assert later_ones([("c", 1), ("a", 1), ("d", 2), ("b", 1), ("e", 3)]) == ["b", "c"]
