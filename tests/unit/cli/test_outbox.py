"""`light-scheduler outbox` without its database."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.host.ports import free_port

RELAY = ["outbox", "relay"]
IMPORT = ["outbox", "import-ajenda", "--topic", "mails", "--target-topic", "mails"]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "command", [RELAY, [*RELAY, "--drain"], IMPORT, [*IMPORT, "--dry-run"]]
)
def test_a_database_that_cannot_be_reached_is_told_in_one_line(
    command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    url = f"postgresql+psycopg://app:secret@127.0.0.1:{free_port()}/shop"
    with caplog.at_level(logging.WARNING):
        ran = CliRunner().invoke(cli, [*command, "--database", url])
    assert ran.exit_code == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("Error: the database failed: ")
    assert "127.0.0.1" in line
    assert "secret" not in line
    assert caplog.messages == []
