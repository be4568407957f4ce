"""Formats of data: every command that prints data has them, and what is printed can be read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.cli import cli
from light_scheduler.cli.output import Output
from light_scheduler.cli.yaml_text import yaml_text
from light_scheduler.contexts import OUTPUT_FORMATS, Contexts, contexts_path, save_contexts

from .test_help import COMMANDS, command_of

OF_NO_DATA = {
    *(("worker",), ("broker",), ("up",), ("completion",)),
    *(("config", name) for name in ("use", "add", "set", "remove")),
}
DATA = [path for path in COMMANDS if path not in OF_NO_DATA]
PREVIEW = ["preview", "--every", "1h", "--from", "2030-01-01T00:00:00Z", "--count", "2"]
DUE = [1_893_459_600_000, 1_893_463_200_000]
ROWS = [{"id": "a", "due": 1}, {"id": "1e3", "due": None}]

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc 1:#-", max_size=5), inner, max_size=4),
    max_leaves=12,
)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli, list(arguments))


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


@pytest.mark.parametrize("path", DATA, ids=" ".join)
def test_every_command_that_prints_data_has_the_formats(path: tuple[str, ...]) -> None:
    options = {name: option for option in command_of(path).params for name in option.opts}
    assert options["-o"] is options["--output"]
    assert list(options["-o"].type.choices) == list(OUTPUT_FORMATS)  # type: ignore[attr-defined]
    assert "--json" in options


def test_a_document_in_each_format() -> None:
    assert json.loads(invoke(*PREVIEW, "-o", "json").stdout) == {"next": DUE}
    assert [json.loads(line) for line in invoke(*PREVIEW, "-o", "jsonl").stdout.splitlines()] == DUE
    assert yaml.safe_load(invoke(*PREVIEW, "-o", "yaml").stdout) == {"next": DUE}
    assert "2030-01-01T01:00:00.000Z" in invoke(*PREVIEW, "-o", "table").stdout
    assert invoke(*PREVIEW, "--json").stdout == invoke(*PREVIEW, "--output", "json").stdout


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS], ids=len)
def test_rows_are_one_document_or_one_a_line(rows: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    def text(format: str) -> str:
        with Output(format).rows() as printer:
            for row in rows:
                printer.print(json.dumps(row).encode())
        return printed(capsys)

    assert json.loads(text("json")) == rows
    assert [json.loads(line) for line in text("jsonl").splitlines()] == rows
    assert yaml.safe_load(text("yaml")) == rows


def test_a_row_is_printed_before_the_next_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    for format in ("json", "jsonl", "yaml"):
        with Output(format).rows() as printer:
            printer.print({"id": "first"})
            assert "first" in printed(capsys)


@pytest.mark.parametrize("format", ["json", "jsonl", "yaml"])
@pytest.mark.parametrize(("rows", "expected"), [([], None), (ROWS, ROWS)], ids=["none", "some"])
def test_a_failure_is_no_empty_list_and_keeps_what_was_printed(
    format: str, rows: list[Any], expected: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        with Output(format).rows() as printer:
            for row in rows:
                printer.print(row)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    text = printed(capsys)
    if format == "jsonl":
        assert ([json.loads(line) for line in text.splitlines()] or None) == expected
    else:
        assert yaml.safe_load(text) == expected


@given(_JSON)
def test_yaml_says_what_json_says(document: Any) -> None:
    assert yaml.safe_load(yaml_text(document)) == document


@pytest.mark.parametrize(
    "text", ["1e3", "0o17", "012", "+1", ".5", "y", "no", "null", "~", "1:30", "2030-01-01", "=", ""]
)
def test_text_that_could_be_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"id": text})[len("id: ")] in "\"'"


def test_the_environment_and_the_context_choose_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    save_contexts(contexts_path(), Contexts().having("a", {"output": "yaml"}).using("a"))
    assert yaml.safe_load(invoke(*PREVIEW).stdout) == {"next": DUE}
    monkeypatch.setenv("LIGHT_SCHEDULER_OUTPUT", "json")
    assert json.loads(invoke(*PREVIEW).stdout) == {"next": DUE}
    assert "due (UTC)" in invoke(*PREVIEW, "-o", "table").stdout


def test_a_context_has_no_other_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert invoke("config", "add", "a", "--output", "jsonl").exit_code == 0
    assert invoke("config", "add", "b", "--output", "xml").exit_code == 2
    contexts_path().write_text('[contexts.a]\noutput = "xml"\n')
    assert "output: 'xml' is not one of table, json, jsonl, yaml" in str(invoke("config", "list").exception)


def test_two_formats_are_wrong_use() -> None:
    ran = invoke(*PREVIEW, "--json", "-o", "yaml")
    assert ran.exit_code == 2
    assert "--json and -o yaml are given together" in ran.stderr
    assert invoke(*PREVIEW, "-o", "xml").exit_code == 2
    assert invoke("list", "--jsonl", "-o", "yaml").exit_code == 2
