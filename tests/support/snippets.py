"""Code in the documents, and how it is run: what a reader copies has to work, and to print what is shown."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from light_scheduler.cli import cli

_FENCE = re.compile(r"^( *)```([a-z]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_TOKEN = re.compile(r"\blst_[0-9a-f]{12}_[\w-]+")
_LATENESS = re.compile(r"\(\+\d+ ms\)")
_SAYS_ITS_CODE = ' || echo "exit code $?"'
_CURL = 'curl() { command curl --silent --show-error --fail-with-body "$@"; }'
_NAMED_BY_USERS = ("labels", "headers")
_ASSIGNMENT = re.compile(r"[A-Z]+=\S+$")


@dataclass(frozen=True)
class Snippet:
    """A code block. `shown` is the block behind it, if that is output; both are text with line breaks.

    `answer` is the block behind it, if that is JSON, or JSON Lines.
    """

    language: str
    text: str
    shown: str | None
    answer: str | None


def snippets(page: Path) -> Iterator[Snippet]:
    """Yield a page's code blocks, in their order."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_FENCE.finditer(text))
    for block, after in pairwise([*blocks, None]):
        assert block is not None
        behind = after if after is not None and text[block.end() : after.start()].strip() == "" else None
        language = None if behind is None else behind[2]
        shown = _text_of(behind) if behind is not None and language == "" else None
        answer = _text_of(behind) if behind is not None and language in ("json", "jsonl") else None
        yield Snippet(block[2], _text_of(block), shown, answer)


def _text_of(block: re.Match[str]) -> str:
    """Return the text of a block, without the indentation of the list that it is in."""
    return re.sub(rf"^{block[1]}", "", block[3], flags=re.MULTILINE)


def session(console: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block in the language `console`, those behind `$ `, each with what it prints."""
    for step in ("\n" + console).split("\n$ ")[1:]:
        command, _, printed = step.partition("\n")
        yield command, printed


def lines_of(shell: str) -> list[str]:
    """Return a shell block's commands, each as one line, without comments of their own."""
    joined = re.sub(r"\\\n\s*", "", shell)
    # A quoted text may go over several lines.
    lines: list[str] = []
    for line in joined.splitlines():
        if lines and lines[-1].count("'") % 2:
            lines[-1] += "\n" + line
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
    return lines


@dataclass(frozen=True)
class Shell:
    """Runs commands: those of light-scheduler in this process, as it starts sooner, others in bash.

    `placed` puts in what stands here for the addresses and topics of the documents.
    """

    placed: Callable[[str], str]
    environment: Mapping[str, str]

    def run(self, line: str, before: str = "") -> tuple[int, str]:
        """Return the exit code and standard output of a command; `before` are assignments that it may use."""
        if line.startswith("light-scheduler "):
            return self._in_process(self.placed(line))
        program = "\n".join(("set -euo pipefail", _CURL, self.placed(before), self.placed(line)))
        ran = subprocess.run(
            ["bash", "-c", program], env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        return ran.returncode, ran.stdout + (ran.stderr if ran.returncode else "")

    def _in_process(self, line: str) -> tuple[int, str]:
        says_its_code = line.endswith(_SAYS_ITS_CODE)
        arguments = shlex.split(line.removesuffix(_SAYS_ITS_CODE), comments=True)[1:]
        ran = CliRunner().invoke(cli, arguments)
        if says_its_code:
            return 0, f"{ran.stdout}exit code {ran.exit_code}\n"
        return ran.exit_code, ran.stdout if ran.exit_code == 0 else f"{ran.output}{ran.exception!r}"

    def run_all(self, shell: str, *, skip: tuple[str, ...] = (), fails: tuple[str, ...] = ()) -> str | None:
        """Run a block's commands; return what the last one printed, None if nothing was run.

        Those that begin with a text of `skip` are left out, those of `fails` have to end with another code than 0.
        """
        printed, before = None, ""
        for line in lines_of(shell):
            if _ASSIGNMENT.match(line):
                before += line + "\n"
            elif not line.startswith(skip):
                code, printed = self.run(line, before)
                assert (code != 0) == line.startswith(fails), f"{line}\nexit code {code}\n{printed}"
        return printed


def needs(shell: str) -> list[str]:
    """Return the programs that a block needs and this machine has not."""
    return [name for name in ("curl", "jq", "kcat") if re.search(rf"\b{name} ", shell) and shutil.which(name) is None]


def comparable(output: str) -> list[str]:
    """Return lines of output without what differs from run to run: instants, lateness, tokens and columns' width."""
    text = _TOKEN.sub("TOKEN", _LATENESS.sub("(+N ms)", _INSTANT.sub("INSTANT", output)))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def unlike(shown: str, printed: str) -> list[str]:
    """Return the members that only one of two JSON documents has, or of two of JSON Lines line by line.

    Of lists their first items count; a list that is shown empty may have some. Values may differ, but not an object or
    a list from what is none.
    """
    pairs: Iterator[tuple[Any, Any]] = zip_longest(_documents(shown), _documents(printed), fillvalue={})
    return [place for one, other in pairs for place in _unlike(one, other, "")]


def _documents(text: str) -> list[Any]:
    """Return the documents of a text: one over all lines, or one in each."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def _unlike(shown: Any, printed: Any, place: str) -> Iterator[str]:
    if isinstance(shown, dict) and isinstance(printed, dict):
        for name in sorted(shown.keys() | printed.keys()):
            inner = f"{place}.{name}"
            if name not in shown or name not in printed:
                yield inner
            elif name not in _NAMED_BY_USERS:
                yield from _unlike(shown[name], printed[name], inner)
    elif isinstance(shown, list) and isinstance(printed, list):
        if shown and printed:
            yield from _unlike(shown[0], printed[0], f"{place}[]")
        elif shown:
            yield f"{place}[]"
    elif isinstance(shown, dict | list) or isinstance(printed, dict | list):
        yield place


async def run_python(code: str, names: dict[str, Any]) -> None:
    """Run code that may await outside of a function, with `names`, which it adds to. Programs run in a thread."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compiled = compile(code, "<document>", "exec", flags, dont_inherit=True)  # annotations are no text there
    if "asyncio.run(" in code:
        await asyncio.to_thread(exec, compiled, {**names})
    elif compiled.co_flags & inspect.CO_COROUTINE:
        await eval(compiled, names)
    else:
        exec(compiled, names)
