"""Packing this package for executors."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.errors import JobError
from light_scheduler.pipeline.packing import pack


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is called in place of PEX, which writes 3 bytes."""
    made: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        made.append(list(command))
        Path(command[command.index("--output-file") + 1]).write_bytes(b"pex")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(subprocess, "run", run)
    return made


def test_a_file_is_made_of_this_environment_for_its_python(calls: list[list[str]], tmp_path: Path) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "pack", str(tmp_path / "environment.pex")])
    assert ran.exit_code == 0, ran.output
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert f"environment.pex has 3 bytes, and needs {version} on the executors" in ran.stdout
    (command,) = calls
    assert command[command.index("--venv-repository") + 1] == sys.prefix
    assert f"/usr/bin/env {version}" in command
    left_out = {name for option, name in pairwise(command) if option == "--exclude"}
    assert left_out == {"pyspark", "py4j", "pex"}


def test_what_pex_says_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "no space left")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(JobError, match=r"PEX cannot pack .*: no space left"):
        pack(tmp_path / "environment.pex")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(JobError, match=r"PEX is not installed: pip install 'light-scheduler\[spark\]'"):
        pack(tmp_path / "environment.pex")


def test_an_interpreter_without_an_environment_cannot_be_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(JobError, match="does not belong to a virtual environment"):
        pack(tmp_path / "environment.pex")
