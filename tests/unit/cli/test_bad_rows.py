"""Files that are no JSON Lines or CSV, or nearly: which rows are sent, and what is said of the others."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli, csv_lines
from light_scheduler.cli.command_rows import Format, Row, field_name, reason_in, rows_of
from light_scheduler.cli.file_position import LoadedLines
from light_scheduler.cli.schedule_file import load

JSON = '{"id":"a","trigger":{"after":"1h"},"target":{"topic":"out"}'
COLUMNS = "id,after,target-topic,payload\n"
ROW = "b,1h,out,hello\n"
BOM = "\ufeff"
CONTENT_TYPE = "application/vnd.light-scheduler.command+json"


def rows_in(folder: Path, format: Format, content: bytes) -> list[Row]:
    file = folder / f"rows.{format}"
    file.write_bytes(content)
    with LoadedLines(file) as lines:
        return list(rows_of(lines, format, "default"))


def told(rows: list[Row]) -> list[tuple[int, object]]:
    """Return the line of each row, with the payload of its command or the field and the reason why there is none."""
    return [
        (row.line, (row.make(None).value or b"").decode() if row.make else f"{row.field}: {row.reason}") for row in rows
    ]


@pytest.mark.parametrize(
    ("text", "payloads"),
    [
        (COLUMNS + ROW, ["hello"]),
        (BOM + COLUMNS + ROW, ["hello"]),
        ((COLUMNS + ROW).replace("\n", "\r\n"), ["hello"]),
        (COLUMNS + ROW.rstrip(), ["hello"]),
        (COLUMNS + "\n\r\n" + ROW, ["hello"]),
        (COLUMNS + 'a,1h,out,"two\r\nlines, ""quoted"""\r\n' + ROW, ['two\r\nlines, "quoted"', "hello"]),
        (COLUMNS + f"a,1h,out,{'x' * 1_000_000}\n" + ROW, ["x" * 1_000_000, "hello"]),
        (COLUMNS + f'a,1h,out,"{"é" * 500_000}"\n' + ROW, ["é" * 500_000, "hello"]),
        (COLUMNS + "a,1h,out,x\0y\n" + ROW, ["x\0y", "hello"]),
        (COLUMNS + "a,1h,out,=cmd|' /C calc'!A0\n", ["=cmd|' /C calc'!A0"]),
        (COLUMNS, []),
    ],
)
def test_csv_as_programs_write_it_is_read(tmp_path: Path, text: str, payloads: list[str]) -> None:
    rows = rows_in(tmp_path, "csv", text.encode())
    assert [payload for _, payload in told(rows)] == payloads


@pytest.mark.parametrize(
    ("row", "line", "reason"),
    [
        ('a,1h,out,"x"y\n', 2, "None: is not CSV: ',' expected after '\"'"),
        ('a,1h,out,"x\ny"z\n', 3, "None: is not CSV, from line 2 on: ',' expected after '\"'"),
        ("a,1h,out,x\ry\n", 2, "None: is not CSV: new-line character"),
        ("a,1h\n", 2, "None: has 2 cells, and there are 4 columns"),
        ("a,1h,out,x,\n", 2, "None: has 5 cells, and there are 4 columns"),
        ("a,soon,out,x\n", 2, "after: 'soon' is not a duration"),
        ("a,1h,a b,x\n", 2, "target-topic: 'a b' is not a topic name"),
        ('"a\x07",1h,out,x\n', 2, "id: 'a\\x07' has control characters"),
    ],
)
def test_a_row_of_csv_that_is_wrong_is_refused_and_the_next_is_sent(
    tmp_path: Path, row: str, line: int, reason: str
) -> None:
    (first, refused), (_, payload) = told(rows_in(tmp_path, "csv", (COLUMNS + row + ROW).encode()))
    assert (first, payload) == (line, "hello")
    assert str(refused).startswith(reason)


@pytest.mark.parametrize(
    ("columns", "cells", "said"),
    [
        ("mode", "fixed-rate", "mode: needs every"),
        ("max-attempts", "3", "max-attempts: needs ack-timeout: the time to wait for the completion"),
        (
            "target-partition,target-partition-key",
            "1,k",
            "target-partition-key: is given together with target-partition:",
        ),
        ("header.schedule-at", "1", "header.schedule-at: header names that begin with schedule- are reserved"),
        ("header.content-type", CONTENT_TYPE, "header.content-type: marks a command in the JSON form"),
    ],
)
def test_what_is_wrong_with_a_row_of_csv_is_told_in_the_names_of_its_columns(
    tmp_path: Path, columns: str, cells: str, said: str
) -> None:
    text = f"id,target-topic,{columns}\na,out,{cells}\n"
    ((_, refused),) = told(rows_in(tmp_path, "csv", text.encode()))
    assert str(refused).startswith(said)


def test_what_a_worker_says_of_a_row_is_told_in_the_names_of_its_file() -> None:
    said = "is for several schedules: give schedule-id as * or as a prefix and *, not 'schedule-id'"
    assert field_name("schedule-ack-timeout", "csv") == "ack-timeout"
    assert reason_in(said, "csv") == "is for several schedules: give id as * or as a prefix and *, not 'schedule-id'"
    assert field_name("schedule-ack-timeout", "jsonl") == "ack_timeout"
    assert reason_in("needs trigger.every", "jsonl") == "needs trigger.every"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "line 1 is empty: it has to name the columns, such as id,at"),
        ("\n" + COLUMNS + ROW, "line 1 is empty"),
        (ROW, "column 'b' is not known"),
        ("id,id,after\na,b,1h\n", "line 1 names the column 'id' more than once"),
        ("id,header.kind,header.kind\na,b,c\n", "line 1 names the column 'header.kind' more than once"),
        ("id,header.,after\na,b,1h\n", r"column 'header\.' is not known"),
        ("id,\na,b\n", "column '' is not known"),
        ((COLUMNS + ROW).replace(",", ";"), r"'id;after;target-topic;payload' is not known.*Separate cells by commas"),
        ((COLUMNS + ROW).replace("\n", "\r"), "line 1, which has to name the columns, is not CSV: .*end lines with"),
        ('id,"header.a\nb"\na,c\n', "line 1, which has to name the columns, is not CSV: .*Close its quotes"),
        (COLUMNS + ROW + 'a,1h,out,"x\n' + ROW * 3, "row that begins in line 3, and not closed: close it"),
        (COLUMNS + 'a,1h,out,"x', "row that begins in line 2, and not closed: close it"),
    ],
)
def test_csv_whose_rows_nobody_can_tell_apart_is_refused_by_line_with_the_remedy(
    tmp_path: Path, text: str, error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        rows_in(tmp_path, "csv", text.encode())


def test_a_quote_that_is_not_closed_does_not_take_the_rest_of_a_large_file_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_lines, "MOST_FIELD_CHARACTERS", 1_000)
    with pytest.raises(ValueError, match="row that begins in line 2, and not closed"):
        rows_in(tmp_path, "csv", (COLUMNS + 'a,1h,out,"x\n' + ROW * 100 + 'c,1h,out,"y"\n').encode())
    long = f"a,1h,out,{'x' * 1_001}\n"
    (_, refused), (_, payload) = told(rows_in(tmp_path, "csv", (COLUMNS + long + ROW).encode()))
    assert "field larger than field limit" in str(refused)
    assert payload == "hello"


@pytest.mark.parametrize("format", ["jsonl", "csv"])
@pytest.mark.parametrize(
    ("encoding", "error"),
    [
        ("latin-1", r"line 2 is not UTF-8 \(its byte \d+ is 0xe9\): convert the file, such as with `iconv"),
        ("utf-16", r"line 1 is not UTF-8 \(its byte 1 is 0xff\): convert the file"),
    ],
)
def test_a_file_in_another_encoding_is_refused_by_line_with_the_remedy(
    tmp_path: Path, format: Format, encoding: str, error: str
) -> None:
    text = {"jsonl": f'{JSON}}}\n{JSON},"key":"café"}}\n', "csv": COLUMNS + "a,1h,out,café\n"}[format]
    with pytest.raises(ValueError, match=error):
        rows_in(tmp_path, format, text.encode(encoding))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (JSON, "body: is not a JSON object"),
        (JSON + "}" + JSON + "}", "body: is not a JSON object: .*trailing characters"),
        (JSON + "\0}", "body: is not a JSON object"),
        ("[1]", "body: is not a JSON object: Expected `object`, got `array`"),
        (JSON + ',"payload":' + "[" * 200_000 + "}", "body: is not a JSON object: .*recursion"),
        (JSON + ',"payload":{"text":"\\ud800"}}', "body: is not a JSON object"),
        (JSON + ',"priority":' + "9" * 5_000 + "}", "priority: "),
        (JSON + ',"priority":NaN}', "body: is not a JSON object"),
        (JSON + ',"reply_topic":"mine"}', "reply_topic: is for Kafka producers only"),
    ],
)
def test_a_line_that_is_no_command_is_refused_and_the_next_is_sent(tmp_path: Path, line: str, reason: str) -> None:
    rows = rows_in(tmp_path, "jsonl", f"{line}\n\n   \n{JSON}}}".encode())
    assert [row.line for row in rows] == [1, 4]
    assert re.match(reason, f"{rows[0].field}: {rows[0].reason}")
    assert rows[1].make is not None


def test_the_file_that_is_sent_is_not_the_one_of_refused_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(COLUMNS + ROW)
    (tmp_path / "link").symlink_to(file)
    sender: object = None
    with pytest.raises(click.UsageError, match="--refused names the file that is sent"):
        load(sender, file, "csv", tmp_path / "link")  # type: ignore[arg-type]
    assert file.read_text() == COLUMNS + ROW


@pytest.mark.parametrize("refused_before", [False, True])
def test_a_file_that_is_not_there_is_wrong_use_also_if_rows_of_it_were_refused_before(
    refused_before: bool, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    if refused_before:
        (tmp_path / "rows.csv.refused.jsonl").touch()
    ran = CliRunner().invoke(cli, ["schedule", "--from-file", str(file)])
    assert ran.exit_code == 2
    assert "Invalid value for --from-file" in ran.stderr
    assert "rows.csv: No such file or directory" in "".join(ran.stderr.splitlines())
