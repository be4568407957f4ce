"""CSV with a quote that is not closed: no row is taken for the text of another one without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.cases import by_day
from support.loading import AT, Load, commands, going_on, put

from light_scheduler.errors import JobError
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.soak]

HEADER = "id,target_topic,payload\n"
OPEN_HEADER = 'id,target_topic,"payload\nb,t,x\n'
SET = {"at": str(AT)}
OPEN = [
    pytest.param('a,t,x\nb,t,"y\nc,t,z\n', {}, id="up to the end of the file"),
    pytest.param('a,t,x\nb,t,"y', {}, id="in the last row"),
    pytest.param('a,t,x\nb,t,"y\nc,t,"z"\nd,t,z\n', {}, id="up to another quote"),
    pytest.param('a,t,x\nb,"t,y\nc,t,z\n', {}, id="with fewer cells"),
    pytest.param('a,t,x\nb,t,z,"y\nc,t,z\n', {}, id="with one cell more"),
    pytest.param('a,t,x\nb,t,"y\nc,t,z\n', {"mode": "DROPMALFORMED"}, id="where malformed rows are left out"),
    pytest.param('a,t,x\nb,t,"y\nc,t,z\n', {"columnPruning": "true"}, id="where not all cells need be read"),
]


@pytest.mark.parametrize(("text", "reading"), by_day(3, OPEN))
def test_a_load_stops_at_a_quote_that_is_not_closed_before_it_sends_anything(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path, text: str, reading: dict[str, str]
) -> None:
    table = tmp_path / "a table.csv"
    table.write_text(HEADER + text)
    with pytest.raises(JobError, match=r"(?s)a%20table\.csv has a row in which .* Close the quote") as error:
        load(table, format="csv", constants=SET, reading=reading)
    assert ": b," in str(error.value), "the row is shown"
    assert commands(kafka, topic) == []


HEADERS = [
    pytest.param({"a": OPEN_HEADER}, {}, id="of the only file"),
    pytest.param({"a": 'id,target_topic,"payload\nb,t,"x"\nc,t,y\n'}, {}, id="up to another quote"),
    pytest.param({"a": HEADER, "b": OPEN_HEADER}, {}, id="of another file"),
    pytest.param({"a": HEADER, "b": OPEN_HEADER}, {"enforceSchema": "true"}, id="that is not compared"),
    pytest.param({"a": "id,target_topic,\n", "b": 'id,target_topic,"\nb,t,\n'}, {}, id="of a column without a name"),
]


@pytest.mark.parametrize(("files", "reading"), by_day(2, HEADERS))
def test_a_load_stops_at_a_header_whose_quote_is_not_closed_and_names_its_file(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path, files: dict[str, str], reading: dict[str, str]
) -> None:
    (folder := tmp_path / "rows").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    ignored = () if "payload" in files["a"] else ("_c2",)
    with pytest.raises(
        JobError, match=rf"(?s)rows/{max(files)} has a header line in which .*: id,target_topic,\""
    ) as error:
        load(folder, format="csv", constants=SET, reading=reading, ignored=ignored)
    assert "Close the quote" in str(error.value)
    assert commands(kafka, topic) == []


@pytest.mark.parametrize(
    ("text", "reading"),
    by_day(
        3,
        [
            ('a,t,"x, ""y""\nz" \nb,t,5" nail\n\nc,t,""', {}),
            ('a,t,x\nb,t,"y\nc,t,z\n', {"multiLine": "false"}),
            ('a,t,"Acme" Ltd\nb,t,"x"\x00\x0b\nc,"t","Acme"s\n', {}),
            ('a,t,"x|y"|b,t,"z"|c,t,z|', {"lineSep": "|"}),
            ('a,t,"x\ry"\nb,t,"\r"\nc,t,z\n', {}),
            ('a;t;"x\\";y"\r\nb;t;""\r\nc;t;z\r\n', {"sep": ";", "escape": "\\"}),
        ],
    ),
)
def test_quotes_that_are_closed_are_no_error(load: Load, tmp_path: Path, text: str, reading: dict[str, str]) -> None:
    table = tmp_path / "table.csv"
    end = reading.get("lineSep", "\r\n" if "\r\n" in text else "\n")
    header = HEADER.replace(",", reading.get("sep", ",")).replace("\n", end)
    table.write_text(header + text, newline="")
    assert load(table, format="csv", constants=SET, reading=reading).sent == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id,payload\na,x\r\nb,y\r\n", "a line does not end as the first line of the file does"),
        pytest.param("payload\r\nx\ny\r\n", "does not end as the first line", marks=pytest.mark.every_case),
        pytest.param("id,payload\r\na,x\nb,y\n", "does not end as the first line", marks=pytest.mark.every_case),
    ],
)
def test_a_load_stops_where_lines_end_differently(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path, text: str, why: str
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text, newline="")
    options: dict[str, Any] = {"format": "csv", "constants": {**SET, "target-topic": "t"}}
    with pytest.raises(JobError, match=rf"(?s)table\.csv has a row in which .*{why}.*et all lines end alike"):
        load(table, **options)
    assert commands(kafka, topic) == []
    assert load(table, **options, reading={"multiLine": "false"}).sent == 2


@pytest.mark.parametrize("row", ['"a\rz",x\r\n', pytest.param('"a\r\nz",x\r\n', marks=pytest.mark.every_case)])
def test_a_carriage_return_in_quotes_hides_no_other_end_of_a_line(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path, row: str
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(f"id,payload\n{row}b,y\n", newline="")
    with pytest.raises(JobError, match=r"(?s)table\.csv has a row in which .*et all lines end alike"):
        load(table, format="csv", constants={**SET, "target-topic": "t"})
    assert commands(kafka, topic) == []


@pytest.mark.every_case
def test_a_load_that_goes_on_refuses_such_a_file_and_sends_the_others(
    spark: SparkSession, load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    (folder := tmp_path / "rows").mkdir()
    options: dict[str, Any] = {"format": "csv", "constants": SET, "refused": str(tmp_path / "refused")}
    (folder / "a").write_text(HEADER + "a,t,x\n")
    with going_on(load, folder, **options) as summaries:
        sent(1)
        for name, text in (("b c", HEADER + 'b,t,"y\nc,t,z\n'), ("d", HEADER + 'd,t,"x\ny"\n'), ("f", OPEN_HEADER)):
            put(folder / name, text)
        sent(2)
        put(folder / "e", HEADER + "e,t,x\n")
        sent(3)
    assert (summaries[0].rows, summaries[0].sent, summaries[0].refused) == (5, 3, 2)
    found = spark.read.parquet(str(tmp_path / "refused")).orderBy("file").collect()
    assert [(Path(row.file).name, row.field, row.content) for row in found] == [
        ("b%20c", "row", None),
        ("f", "row", None),
    ]
    for row, text in zip(found, ('b,t,"y\nc,t,z', OPEN_HEADER.strip()), strict=True):
        assert row.reason.startswith("a cell that begins with a quote does not end with one, so no row of this file is")
        assert row.reason.endswith(f": {text}")
