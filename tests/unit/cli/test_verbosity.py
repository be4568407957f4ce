"""`-q` and `-v`: before a command or after it, and never with a secret."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli

NOBODY = "http://somebody:pass-word@127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli, list(arguments))


@pytest.mark.parametrize("arguments", [["-q", "config", "list"], ["config", "list", "--quiet"]], ids=" ".join)
def test_quiet_leaves_out_notes(arguments: list[str]) -> None:
    assert invoke("config", "list").stderr == "There is no context. Add one with `light-scheduler config add`.\n"
    ran = invoke(*arguments)
    assert (ran.exit_code, ran.stderr) == (0, "")


def test_quiet_leaves_errors() -> None:
    ran = invoke("-q", "preview", "--cron", "61 * * * *")
    assert ran.exit_code == 2
    assert "--cron" in ran.stderr


@pytest.mark.parametrize("arguments", [["-v", "list"], ["list", "-v"]], ids=" ".join)
def test_verbose_says_what_is_asked_of_whom_and_no_secret(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIGHT_SCHEDULER_TOKEN", "lst_very-secret")
    ran = invoke(*arguments, "--url", NOBODY, "--tenant", "shop", "--label", "a=b")
    assert "GET http://127.0.0.1:1/api/v1/tenants/shop/schedules?label=a%3Db" in ran.stderr
    assert "pass-word" not in ran.stderr
    assert "very-secret" not in ran.stderr
    assert "GET" not in invoke("list", "--url", NOBODY).stderr


def test_the_log_is_as_before_after_a_verbose_command() -> None:
    logger = logging.getLogger("light_scheduler")
    before = (logger.level, logger.propagate, list(logger.handlers))
    invoke("-v", "config", "list")
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


@pytest.mark.parametrize("arguments", [["-qv", "config", "list"], ["-q", "config", "list", "-v"]], ids=" ".join)
def test_both_are_wrong_use(arguments: list[str]) -> None:
    ran = invoke(*arguments)
    assert ran.exit_code == 2
    assert "--quiet and --verbose are given together" in ran.stderr
