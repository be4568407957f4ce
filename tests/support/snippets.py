"""Code in the documents, and how it is run: what a reader copies has to work, and to print what is shown."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from light_scheduler.cli import cli

_FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_LATENESS = re.compile(r"\(\+\d+ ms\)")
_SAYS_ITS_CODE = ' || echo "exit code $?"'
_CURL = 'curl() { command curl --silent --show-error --fail-with-body "$@"; }'
_ASSIGNMENT = re.compile(r"[A-Z]+=\S+$")


@dataclass(frozen=True)
class Snippet:
    """A code block. `shown` is the block behind it, if that is output; both are text with line breaks."""

    language: str
    text: str
    shown: str | None


def snippets(page: Path) -> Iterator[Snippet]:
    """Yield a page's code blocks, in their order."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_FENCE.finditer(text))
    for block, after in pairwise([*blocks, None]):
        assert block is not None
        follows = after is not None and after[1] == "" and text[block.end() : after.start()].strip() == ""
        yield Snippet(block[1], block[2], after[2] if after is not None and follows else None)


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
    """Return lines of output without what differs from run to run: instants, lateness and the width of columns."""
    text = _LATENESS.sub("(+N ms)", _INSTANT.sub("INSTANT", output))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


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
