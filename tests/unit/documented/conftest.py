"""Fixtures of the tests of documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files and the context that calls name, which the command line looks for when it reads them."""
    (tmp_path / "body.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "contexts"))
    CliRunner().invoke(cli, ["config", "add", "staging", "--url", "http://127.0.0.1:9"], catch_exceptions=False)
    return tmp_path
