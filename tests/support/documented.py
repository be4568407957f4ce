"""The documents' code blocks: which test takes those of a page, and the calls in them as the command line reads them.

A block that no test takes fails tests/unit/documented/test_blocks.py.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from light_scheduler.cli import cli

from .snippets import lines_of, session, snippets

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *("benchmarks/README.md", "benchmarks/EXPERIMENTS.md"),
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
)

SHELL_PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("tutorial", "command-line", "http", "delayed-topics", "operating", "security")),
    "docs/tenants.md",
)
"""Their commands run against a worker."""

PYTHON_PAGES = ("docs/client.md", "docs/native.md", "docs/outbox.md", "docs/security.md")
"""Their programs run against a worker, one after the other with the same names."""

STATIC_PAGES = (
    *("CONTRIBUTING.md", "benchmarks/README.md", "benchmarks/EXPERIMENTS.md"),
    "docs/benchmarks.md",
    "docs/deployment.md",
)
"""Their commands take long, or need a cluster or a container engine."""

GUIDES = ("ajenda", "apscheduler", "celery", "etf1", "karafka", "light-4j", "quartz-spring", "sky-uk")
"""From which schedulers there is a guide to migrating."""

DRAWINGS = ("README.md", "docs/architecture.md", "docs/design-state.md", "docs/migrating.md", "docs/threat-model.md")
"""Each has one block of text: a picture."""

EVERYWHERE = ("json", "jsonl", "toml", "yaml", "ini")
"""Languages whose blocks are read, wherever they are."""

OUTPUT = ""
"""The language of a block that is what the commands before it print."""

_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_SNIPPETS = "tests/integration/test_documented_snippets.py"
_BLOCKS = "tests/unit/documented/test_blocks.py"
_CALLS = "tests/unit/documented/test_calls.py"
_OUTPUT = "tests/unit/documented/test_output.py"


@dataclass(frozen=True)
class Taken:
    """The blocks of these languages on these pages are run or checked by a test."""

    test: str
    languages: tuple[str, ...]
    pages: tuple[str, ...]


TAKEN = (
    Taken(_SNIPPETS, ("sh", OUTPUT, "console"), SHELL_PAGES),
    Taken(_SNIPPETS, ("sh", OUTPUT), ("docs/access.md",)),
    Taken(_SNIPPETS, ("sh",), ("docs/dialects.md",)),
    Taken(_SNIPPETS, ("python",), (*PYTHON_PAGES, "README.md", "docs/tutorial.md")),
    Taken("tests/unit/payloads/test_decode.py", ("python",), ("docs/http.md",)),
    Taken(_SNIPPETS, ("java", "go"), ("docs/native.md",)),
    Taken(_SNIPPETS, ("csv",), ("docs/command-line.md",)),
    Taken(_SNIPPETS, ("text",), ("docs/access.md", "docs/client.md")),
    Taken("tests/integration/test_migrating.py", ("sh", OUTPUT), tuple(f"docs/migrating-{name}.md" for name in GUIDES)),
    Taken(
        "tests/integration/test_migrating.py",
        ("python",),
        tuple(f"docs/migrating-{name}.md" for name in ("ajenda", "celery", "quartz-spring")),
    ),
    Taken("tests/pipeline/test_documented_commands.py", ("sh", OUTPUT, "python", "sql"), ("docs/pipeline.md",)),
    Taken("tests/unit/test_double.py", ("python",), ("docs/testing.md",)),
    Taken(_CALLS, ("sh", OUTPUT), STATIC_PAGES),
    Taken(_CALLS, ("sh",), ("docs/native.md", "docs/outbox.md")),
    Taken(_OUTPUT, ("text",), DRAWINGS),
    Taken(_OUTPUT, ("text",), ("docs/command-line.md", "docs/native.md", "docs/operating.md", "docs/security.md")),
    Taken(_BLOCKS, EVERYWHERE, PAGES),
)


def texts(page: str) -> list[str]:
    """Return the blocks of text of a page: pictures, and output that does not stand behind its command."""
    return [snippet.text for snippet in snippets(ROOT / page) if snippet.language == "text"]


def shell_lines(page: str) -> Iterator[str]:
    """Yield all commands of a page, each as one line."""
    for snippet in snippets(ROOT / page):
        if snippet.language == "sh":
            yield from lines_of(snippet.text)
        elif snippet.language == "console":
            for command, _ in session(snippet.text):
                yield from lines_of(command)


def words_of(line: str) -> list[list[str]]:
    """Return the commands of a line of a shell as their words, without assignments: those of a pipe, and of a list."""
    lexer = shlex.shlex(re.sub(r"\s#\s.*", "", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    commands: list[list[str]] = [[]]
    words = iter(lexer)
    for word in words:
        if word in ("<", ">", ">>"):
            next(words)  # a file
        elif set(word) <= set("();<>|&"):
            commands.append([])
        elif commands[-1] or not _ASSIGNMENT.match(word):
            commands[-1].append(word)
    return [command for command in commands if command]


def parse_call(arguments: Sequence[str]) -> None:
    """Read the arguments of `light-scheduler` as the command line does, without carrying them out.

    Raises click's UsageError, or ConfigurationError for a setting that is wrong.
    """
    command: click.Command = cli
    rest = list(arguments)
    # Exit: after --help. A context closes the files that it opened.
    with contextlib.suppress(click.exceptions.Exit), contextlib.ExitStack() as contexts:
        context = contexts.enter_context(command.make_context("light-scheduler", rest))
        while isinstance(command, click.Group):
            name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None
            command, context = found, contexts.enter_context(found.make_context(name, rest, parent=context))
