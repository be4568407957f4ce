"""Rows of CSV in which all quotes are closed, and those in which one is not."""

from __future__ import annotations

import re

import pytest

from light_scheduler.pipeline.load.csv_quotes import is_checked
from light_scheduler.pipeline.load.csv_rows import row_pattern

CLOSED = [
    "",
    "a",
    "a,b,c",
    'a,"b, c",d',
    'a,"two\nlines, ""quoted""","{""kind"": ""x""}"',
    '"",,""',
    '""""',
    'a,5" nail,"6"" nail"',
    'a,"b" \t,c',
    'a,"b"\x00\x0b,c',
    'a,"b" c,d',
    '"Acme" Ltd',
    'a,"Acme"s "best" one,d',
    ' "a, b",c',
    '\n\r\na,"b"',
    'a,"b"\r',
]
OPEN = [
    '"',
    '"""',
    'a,"b',
    'a,"b\nc,d\n',
    'a,"b\nc,"d"',
    'a,"b, c" d',
    'a,"b\nc" d',
    'a,"b""',
    'a,"b"" c,d',
    '\n"a\nb,c',
]


@pytest.mark.parametrize("row", CLOSED)
def test_a_cell_that_begins_with_a_quote_and_ends_with_one_is_closed(row: str) -> None:
    assert re.search(row_pattern({}), row)


@pytest.mark.parametrize("row", OPEN)
def test_a_cell_that_begins_with_a_quote_and_does_not_end_with_one_is_not(row: str) -> None:
    assert not re.search(row_pattern({}), row)


@pytest.mark.parametrize(
    ("reading", "closed", "open"),
    [
        ({"sep": ";"}, 'a;"b;c"', 'a;"b,c'),
        ({"SEP": r"\t"}, 'a\t"b"\t"c"', 'a\t"b\tc'),
        ({"delimiter": "||"}, 'a||"b|"||c', 'a||"b||c'),
        ({"quote": "'"}, "a,'b',\"c", "a,'b"),
        ({"escape": "\\"}, r'a,"b\",\\",c', r'a,"b\",c'),
        ({"ignoreLeadingWhiteSpace": "true"}, 'a, "b"', 'a, "b'),
        ({"lineSep": "|"}, '|a,"b"|', 'a,"b|c,d|'),
        ({"escape": "\\", "quote": "'"}, "a,'b' c", r"a,'b\' c"),
        ({"comment": "#"}, '# "a, "b\na,"b"', '# a\na,"b'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_row_is_cut_by_the_options_of_the_reader(reading: dict[str, str], closed: str, open: str) -> None:
    assert re.search(row_pattern(reading), closed)
    assert not re.search(row_pattern(reading), open)


@pytest.mark.parametrize("row", ["a,b\nc,d", "a,b\rc,d", 'a,"b"\nc', 'a,"b" c\nd', "a\nb"])
def test_a_line_break_is_in_quotes_or_there_is_another_row(row: str) -> None:
    assert not re.search(row_pattern({}), row)
    assert re.search(row_pattern({}, has_breaks=True), row)
    assert re.search(row_pattern({"lineSep": "|"}), row)


@pytest.mark.parametrize("end", ['"', ""])
def test_a_long_row_is_looked_at_once(end: str) -> None:
    row = 'a,"' + '""x' * 500_000 + end
    assert bool(re.search(row_pattern({}), row)) is bool(end)


@pytest.mark.parametrize(
    ("format", "reading", "checked"),
    [
        ("csv", {}, True),
        ("csv", {"quote": "'"}, True),
        ("csv", {"Quote": ""}, False),
        ("csv", {"multiline": "False"}, False),
        ("csv", {"multiLine": "true"}, True),
        ("csv", {"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"}, False),
        ("json", {}, False),
    ],
)
def test_files_are_looked_at_that_have_quotes_unless_the_reader_is_told_what_to_do(
    format: str, reading: dict[str, str], checked: bool
) -> None:
    assert is_checked(format, reading) is checked
