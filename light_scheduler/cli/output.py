"""`-o table|json|jsonl|yaml`: how commands print data on standard output. Nothing else goes there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from light_scheduler.contexts import OUTPUT_FORMATS
from light_scheduler.settings import ENVIRONMENT_PREFIX

from .context import of_context

F = TypeVar("F", bound=Callable[..., Any])

_HELP = (
    "How to print data: a table to read, one JSON document, JSON Lines or YAML. "
    f"[default: table; env: {ENVIRONMENT_PREFIX}OUTPUT]"
)


class Output:
    """Prints data in a format. Tables for people are printed by the command itself, which checks `is_table`."""

    def __init__(self, format: str) -> None:
        self.format = format

    @property
    def is_table(self) -> bool:
        """Whether a person reads the output."""
        return self.format == "table"

    @property
    def is_lines(self) -> bool:
        """Whether each row is a document of its own, which can be printed at once."""
        return self.format == "jsonl"

    def print(self, document: object, rows: str | None = None) -> None:
        """Print a document. As JSON Lines, print each row of its list `rows`, or the document itself, as one line."""
        if not self.is_lines or rows is None:
            click.echo(_text(document, self.format))
            return
        for row in getattr(document, rows) if not isinstance(document, dict) else document[rows]:
            click.echo(_text(row, self.format))

    def rows(self) -> Rows:
        """Return a printer for rows that arrive one by one: an array in JSON, a sequence in YAML."""
        return Rows(self.format)


class Rows:
    """Prints one row after another. A context manager: leaving it ends the document."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._count = 0

    def print(self, row: object) -> None:
        """Print a row. Bytes are a row that is already encoded as JSON."""
        document = msgspec.Raw(row) if isinstance(row, bytes) else row
        match self._format:
            case "json":
                click.echo(("," if self._count else "[") + _text(document, "json"))
            case "yaml":
                click.echo(_text([document], "yaml"))
            case _:
                click.echo(_text(document, "jsonl"))
        self._count += 1

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if self._count == 0 and failure is not None:
            return  # a failure must not look like an empty list
        if self._format == "json":
            click.echo("]" if self._count else "[]")
        elif self._format == "yaml" and not self._count:
            click.echo("[]")


def output_option(*, of_rows: bool = False, in_lines: bool = False) -> Callable[[F], F]:
    """Add `-o`, and `--json` as its short form. The command receives `output: Output`.

    With `of_rows`, the command prints rows as they arrive, and `--json` is JSON Lines. `in_lines` adds `--jsonl`.
    """
    shorts = {"--json": "jsonl" if of_rows else "json", **({"--jsonl": "jsonl"} if in_lines else {})}

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_output(*args: Any, output_format: str, **kwargs: Any) -> Any:
            given = [(option, format) for option, format in shorts.items() if kwargs.pop(_name(option))]
            return function(*args, output=Output(_chosen(output_format, given)), **kwargs)

        command: Any = with_output
        for option, format in reversed(shorts.items()):
            command = click.option(option, _name(option), is_flag=True, help=f"Short for -o {format}.")(command)
        return click.option(  # type: ignore[no-any-return]
            "-o",
            "--output",
            "output_format",
            type=click.Choice(OUTPUT_FORMATS),
            default=lambda: of_context("output", OUTPUT_FORMATS[0]),
            envvar=f"{ENVIRONMENT_PREFIX}OUTPUT",
            help=_HELP,
        )(command)

    return decorate


def _name(option: str) -> str:
    return f"as_{option.removeprefix('--')}"


def _chosen(format: str, shorts: list[tuple[str, str]]) -> str:
    """Return the format of `-o` or of a short form. Raises UsageError if they contradict each other."""
    if not shorts:
        return format
    source = click.get_current_context().get_parameter_source("output_format")
    chosen = [*shorts, *([(f"-o {format}", format)] if source is ParameterSource.COMMANDLINE else [])]
    if len({format for _, format in chosen}) > 1:
        raise click.UsageError(f"{' and '.join(option for option, _ in chosen)} are given together: give one of them")
    return shorts[0][1]


def _text(document: object, format: str) -> str:
    encoded = msgspec.json.encode(document)
    if format != "yaml":
        return encoded.decode()
    from .yaml_text import yaml_text

    return yaml_text(msgspec.json.decode(encoded))
