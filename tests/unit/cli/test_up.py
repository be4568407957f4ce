"""`up` runs a broker of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.cli.up import _what_to_try, _worker
from light_scheduler.contexts import Contexts, contexts_path, save_contexts
from light_scheduler.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def contexts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return where contexts of the user would be: there are none."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("LIGHT_SCHEDULER_CONTEXT", raising=False)
    return contexts_path()


def test_workers_of_up_log_in_to_nothing_whatever_the_settings_say_of_other_brokers() -> None:
    environment = {
        "LIGHT_SCHEDULER_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "LIGHT_SCHEDULER_SASL_MECHANISM": "PLAIN",
        "LIGHT_SCHEDULER_SASL_USERNAME": "user",
        "LIGHT_SCHEDULER_SASL_PASSWORD": "password",
    }
    settings = _worker(load_settings(environment=environment), 9092, 1).settings
    assert not settings.connection.is_secured
    assert settings.sasl_password is None


def first_steps(port: int = 9092) -> list[str]:
    """Return the lines before the commands to try of workers with a broker at a port, besides empty ones."""
    settings = _worker(Settings(), port, 1).settings
    before, _, _ = _what_to_try(settings).partition("Try, in another terminal:")
    return [line for line in before.split("\n") if line]


def test_nothing_is_to_be_done_before_the_commands_that_reach_the_workers_by_default() -> None:
    assert first_steps() == []
    assert first_steps(19092) == [
        "In another terminal, first:",
        "  export LIGHT_SCHEDULER_BROKER=kafka://127.0.0.1:19092",
    ]


def test_a_context_is_left_before_the_commands_which_would_work_in_it(
    contexts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = {"broker": "kafka://kafka-1:9092", "tenant": "shop"}
    save_contexts(contexts, Contexts({"live": live}))
    assert first_steps() == []
    save_contexts(contexts, Contexts({"live": live}, "live"))
    assert first_steps(19092) == [
        "In another terminal, first:",
        "  light-scheduler config use --none",
        "  export LIGHT_SCHEDULER_BROKER=kafka://127.0.0.1:19092",
        "Otherwise, the commands below work in the context live.",
        "To work in live again: light-scheduler config use live",
    ]
    monkeypatch.setenv("LIGHT_SCHEDULER_CONTEXT", "staging")
    assert first_steps() == [
        "In another terminal, first:",
        "  unset LIGHT_SCHEDULER_CONTEXT",
        "  light-scheduler config use --none",
        "Otherwise, the commands below work in the context staging.",
        "To work in live again: light-scheduler config use live",
    ]


def test_contexts_that_cannot_be_read_do_not_hold_up_what_works_without(contexts: Path) -> None:
    contexts.parent.mkdir()
    contexts.write_text("current =")
    assert first_steps() == []
