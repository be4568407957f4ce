"""Files in the folder of a table that Spark would not read: no load passes over them without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.cases import by_day
from support.loading import AT, Load, commands, meanwhile, parquet

from light_scheduler.errors import JobError
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.soak]

SET = {"target-topic": "t", "at": str(AT)}
ALL = {"recursiveFileLookup": "true"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (folder := tmp_path / "rows").mkdir()
    return folder


def put(path: Path, id: str, format: str = "json") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "parquet":
        parquet(path, id=[id])
    else:
        path.write_text(f'{{"id": "{id}"}}\n' if format == "json" else f"id\n{id}\n")


@pytest.mark.parametrize(
    "format",
    by_day(1, ["parquet", "json", "csv"]),
)
@pytest.mark.parametrize(
    ("read", "unread", "why"),
    [
        ("tenant=a/x", "b c", r"files are beside the folders tenant=\.\.\., and Spark reads only"),
        ("x", "in/b c", "files are in folders within the folder that is loaded"),
    ],
)
def test_a_load_stops_at_files_that_spark_does_not_read_before_it_sends_anything(
    load: Load, kafka: Kafka, topic: str, folder: Path, format: str, read: str, unread: str, why: str
) -> None:
    put(folder / read, "a", format)
    put(folder / "_not-to-be-loaded" / "c", "c", format)
    put(folder / unread, "b", format)
    with pytest.raises(JobError, match=rf"{why}.*b%20c\. Nothing of them was sent\. Move them"):
        load(folder, format=format, constants=SET)
    assert commands(kafka, topic) == []
    assert load(folder, format=format, constants=SET, reading=ALL).sent == 2


def test_a_file_and_a_pattern_of_files_are_read_whole(load: Load, folder: Path) -> None:
    for name in ("a", "b", "in/c"):
        put(folder / name, name[-1])
    assert load(folder / "a", format="json", constants=SET).sent == 1
    assert load(folder / "[ab]", format="json", constants=SET).sent == 1
    assert load(folder / "{a,b,in}", format="json", constants=SET).sent == 1


@pytest.mark.parametrize(
    ("first", "later", "unread"),
    [
        pytest.param("tenant=a/a", "tenant=b/b", "c", id="beside folders with columns"),
        pytest.param("a", "b", "in/c", id="in a folder", marks=pytest.mark.every_case),
    ],
)
def test_a_load_that_goes_on_stops_at_them_too(
    load: Load,
    kafka: Kafka,
    topic: str,
    sent: Callable[[int], None],
    folder: Path,
    tmp_path: Path,
    first: str,
    later: str,
    unread: str,
) -> None:
    put(folder / first, "a")

    def add() -> None:
        sent(1)
        for name, id in ((unread, "c"), (later, "b")):
            put(tmp_path / id, id)
            (folder / name).parent.mkdir(exist_ok=True)
            (tmp_path / id).rename(folder / name)

    with pytest.raises(JobError, match=rf"{unread}\. Nothing of them was sent"), meanwhile(add):
        load(folder, format="json", constants=SET, refused=str(tmp_path / "refused"), every_s=1.0)
    assert len(commands(kafka, topic)) == 1
