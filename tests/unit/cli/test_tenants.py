"""`light-scheduler tenants`: what it says of rules that do nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.cli import tenants as tenants_module
from light_scheduler.model import Requester
from light_scheduler.model.tenant_rules import Tenant, TenantRules, TenantWasDeleted


@pytest.fixture(autouse=True)
def one_tenant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tenant whose rules are kept here."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    class Store:
        rules = TenantRules()

        async def set_rules(self, name: str, change: Callable[[TenantRules], TenantRules], by: Requester) -> Tenant:
            self.rules = change(self.rules)
            return Tenant(name=name, rules=self.rules, changed_by=by.by)

    store = Store()

    def with_store(_: Any, use: Callable[[Store], Awaitable[Tenant]]) -> Tenant:
        async def used() -> Tenant:
            return await use(store)

        return asyncio.run(used())

    monkeypatch.setattr(tenants_module, "_with_store", with_store)


def warning_of(*words: str) -> str:
    ran = CliRunner().invoke(cli, ["tenants", "set", "shop", *words])
    assert ran.exit_code == 0, ran.stderr
    return ran.stderr


def test_to_delay_without_a_rate_is_warned_of() -> None:
    warning = "warning: --over-rate has no effect until the tenant has a rate: set --commands-per-second, too\n"
    assert warning_of("--over-rate", "delay") == warning
    assert warning_of("--commands-per-second", "5") == ""
    assert warning_of("--lift", "commands-per-second") == warning
    assert warning_of("--lift", "over-rate") == ""


def test_a_pause_of_a_deleted_tenant_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise TenantWasDeleted("tenant", "shop was deleted, and a pause would undo that: resume it first")

    monkeypatch.setattr(tenants_module, "_with_store", refused)
    ran = CliRunner().invoke(cli, ["tenants", "pause", "shop"])
    assert ran.exit_code == 1
    assert ran.stderr == "Error: tenant: shop was deleted, and a pause would undo that: resume it first\n"


@pytest.mark.parametrize(
    ("words", "why"), [([], "give a rule to set"), (["--weight", "3", "--lift", "weight"], "both")]
)
def test_rules_that_cannot_be_told_are_wrong_use(words: list[str], why: str) -> None:
    ran = CliRunner().invoke(cli, ["tenants", "set", "shop", *words])
    assert ran.exit_code == 2
    assert why in ran.stderr
