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
from light_scheduler.model.tenant_rules import Tenant, TenantRules


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
