"""JSON lines with more than one value, of which Spark reads the first: what it leaves is never lost without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.cases import by_day
from support.loading import AT, Load, commands, going_on, put

from light_scheduler.errors import JobError
from light_scheduler.pipeline.load import one_value
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.soak]

SET = {"target-topic": "t", "at": str(AT)}
WITH_MORE = [
    '{"id": "a"} {"id": "b"}',
    '{"id": "a"}{"id": "b"}',
    '{"id": "a"},{"id": "b"}',
    '{"id": "a", "labels": {"k": "v"}}, "x": {"id": "b"}',
    '[{"id": "a"}] {"id": "b"}',
    '{"id": "a"}] {"id": "b"}',
    '{"id": "a"}} {"id": "b"}',
    '{"id": "a"}, "x"]',
    '[] {"id": "b"}',
    '{"id": "a"} and more',
]
WHOLE = [
    '{"id": "flat", "payload": "x"}  ',
    '  {"id": "nested", "labels": {"k": "v"}, "headers": {"x": "1"}}',
    '{"id": "text", "payload": "{\\"a\\": [1, 2]} {\\"b\\": \\"\\\\\\\\\\"} ],"}',
    "",
    '{"id": "a comma", "labels": {"k": "v"}}, \u00a0\x00\x1a',
    '[{"id": "one of two"}, {"id": "two of two"}]',
]
"""Lines that hold six rows."""


@pytest.mark.parametrize("line", by_day(4, WITH_MORE))
def test_a_load_stops_at_a_line_with_more_than_one_value_before_it_sends_anything(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path, line: str
) -> None:
    table = tmp_path / "table.json"
    table.write_text("\n".join([*WHOLE, line, *WHOLE]))
    with pytest.raises(JobError, match=r"table\.json has more than one JSON value .* on a line of its own") as error:
        load(table, format="json", constants=SET)
    assert line in str(error.value)
    assert commands(kafka, topic) == []


def test_a_line_may_have_brackets_in_texts_and_objects_in_the_object(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = tmp_path / "table.json"
    table.write_text("\ufeff" + "\n".join(WHOLE))
    assert load(table, format="json", constants=SET).sent == 6
    assert {command.id for command in commands(kafka, topic)} == {
        *("flat", "nested", "text", "a comma", "one of two", "two of two"),
    }


@pytest.mark.parametrize("text", ['[\n{"id": "a"},\n{"id": "b"}\n]\n', '\ufeff{\n"id": "a"\n}\n'])
def test_a_file_that_is_one_value_over_several_lines_is_loaded(load: Load, tmp_path: Path, text: str) -> None:
    table = tmp_path / "table.json"
    table.write_text(text)
    assert load(table, format="json", constants=SET, reading={"multiLine": "true"}).sent == text.count("id")


def test_a_file_of_lines_is_not_taken_for_the_first_of_them(load: Load, tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    table.write_text('{"id": "a"}\n{"id": "b"}\n')
    with pytest.raises(JobError, match="without multiLine"):
        load(table, format="json", constants=SET, reading={"multiLine": "true"})


@pytest.mark.every_case
def test_a_larger_file_with_multi_line_is_not_looked_at(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_value, "_MOST_BYTES", 20)
    table = tmp_path / "table.json"
    table.write_text('{"id": "a"}\n{"id": "b"}\n')
    assert load(table, format="json", constants=SET, reading={"multiLine": "true"}).sent == 1


def test_a_folder_may_have_any_partitions(load: Load, tmp_path: Path) -> None:
    for number, more in enumerate(("", ' {"id": "b"}')):
        (folder := tmp_path / "table" / f"value={number}").mkdir(parents=True)
        (folder / "rows.json").write_text('{"id": "a"}' + more)
    with pytest.raises(JobError, match=r"value=1/rows\.json has more than one JSON value"):
        load(tmp_path / "table", format="json", constants=SET, ignored=("value",))


def test_a_line_may_have_what_the_reader_is_told_to_allow(load: Load, tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    table.write_text('{"id": "a", "labels": {"k": "v"}} // why {"id": "b"}\n')
    assert load(table, format="json", constants=SET, reading={"allowComments": "true"}).sent == 1


@pytest.mark.every_case
def test_a_load_that_goes_on_sends_the_first_value_and_refuses_the_rest(
    spark: SparkSession, load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a b").write_text('{"id": "a"}\n')
    with going_on(load, folder, format="json", constants=SET, refused=str(tmp_path / "refused")) as summaries:
        sent(1)
        put(folder / "c d", '{"id": "c"}\n{"id": "d"} {"id": "e"}\n{"id": "f"\n')
        sent(3)
    assert (summaries[0].rows, summaries[0].sent, summaries[0].refused) == (5, 3, 2)
    found = {row.reason: row for row in spark.read.parquet(str(tmp_path / "refused")).collect()}
    assert found.keys() == {
        'is malformed: {"id": "f"',
        'only the first JSON value of this line was read: {"id": "d"} {"id": "e"}',
    }
    assert {(Path(row.file).name, row.field, row.content) for row in found.values()} == {("c%20d", "row", None)}


NO_ROWS = ['[] {"id": "b"}', '5 {"id": "b"}', 'null {"id": "b"}', '"x" {"id": "b"}', 'true, {"id": "b"}', "null", "[7]"]
"""Lines of which no row is read, by what they begin with."""


@pytest.mark.parametrize("checkpoint", [None, "checkpoint"])
@pytest.mark.every_case
def test_a_file_of_which_no_row_is_read_is_refused_and_named(
    spark: SparkSession, load: Load, sent: Callable[[int], None], tmp_path: Path, checkpoint: str | None
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a").write_text('{"id": "a"}\n')
    place = None if checkpoint is None else str(tmp_path / checkpoint)
    options = {"format": "json", "constants": SET, "refused": str(tmp_path / "refused"), "checkpoint": place}
    with going_on(load, folder, **options) as first:
        sent(1)
        for number, line in enumerate(NO_ROWS):
            put(folder / f"no row%{number}", f"{line}\n")
    with going_on(load, folder, **options) as second:
        put(folder / "c", '{"id": "c"}\n')
        sent(2)
    found = spark.read.parquet(str(tmp_path / "refused")).collect()
    lines = {Path(row.file).name: row.reason.split(": ", 1)[1] for row in found}
    assert lines == {f"no%20row%25{number}": line for number, line in enumerate(NO_ROWS)}
    assert first[0].refused + second[0].refused == len(found)
    if checkpoint is not None:
        assert len(found) == len(NO_ROWS), "each once"


@pytest.mark.every_case
def test_a_line_that_is_malformed_and_has_more_than_one_value_is_refused_once(
    spark: SparkSession, load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a").write_text('{"id": "a", "priority": 1}\n')
    line = '{"id": "b", "priority": {"x": 1}} {"id": "c"}'
    with going_on(load, folder, format="json", constants=SET, refused=str(tmp_path / "refused")) as summaries:
        sent(1)
        put(folder / "b", f'{line}  \n{{"id": "d", "priority": 1}}\n')
        sent(2)
    (refused,) = spark.read.parquet(str(tmp_path / "refused")).collect()
    assert refused.reason.rstrip() == f"is malformed: {line}"
    assert (summaries[0].rows, summaries[0].sent, summaries[0].refused) == (3, 2, 1)
