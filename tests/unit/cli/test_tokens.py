"""`light-scheduler tokens`: a token that is not there is a refusal, and a wrong option is wrong use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner, Result

from light_scheduler.access import Role
from light_scheduler.access import store as store_module
from light_scheduler.access.accepted_tokens import AccessBook
from light_scheduler.access.records import Revocation
from light_scheduler.access.store import TokenStore
from light_scheduler.access.tokens import Token, new_token
from light_scheduler.cli import cli
from light_scheduler.cli import tokens as tokens_module
from light_scheduler.clock import SettableClock
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.model import TopicNames

T = TypeVar("T")

NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def revoked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Token:
    """Have commands find one token, which was revoked; return it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    token, _ = new_token("shop", Role.READ, None, by="test", now=NOW, lifetime=None)
    names = TopicNames("app")
    store = TokenStore(CompactedTopic("127.0.0.1:1", names.tenants, names.history), SettableClock(NOW))
    store.book = AccessBook({token.id: token}, {token.id: Revocation(NOW, "test")})

    @asynccontextmanager
    async def opened_store(*_: Any) -> AsyncIterator[TokenStore]:
        yield store

    def on_kafka(_: Any, work: Callable[[], Awaitable[T]]) -> T:
        async def done() -> T:
            return await work()

        return asyncio.run(done())

    monkeypatch.setattr(store_module, "opened_store", opened_store)
    monkeypatch.setattr(tokens_module, "on_kafka", on_kafka)
    return token


def tokens(*words: str) -> Result:
    return CliRunner().invoke(cli, ["tokens", *words])


@pytest.mark.parametrize("command", ["rotate", "revoke"])
def test_a_token_that_is_not_there_or_was_revoked_is_refused(command: str, revoked: Token) -> None:
    ran = tokens(command, "0" * 12)
    assert (ran.exit_code, ran.stderr) == (1, "Error: id: there is no token '000000000000'\n")
    ran = tokens(command, revoked.id)
    assert (ran.exit_code, ran.stderr) == (1, f"Error: id: token {revoked.id} was revoked already\n")


def test_a_name_that_no_token_can_have_is_wrong_use() -> None:
    ran = tokens("create", " ", "--role", "read", "--all-tenants")
    assert ran.exit_code == 2
    assert "name: ' ' must be 1 to" in ran.stderr


def test_an_id_that_is_left_out_is_wrong_use() -> None:
    assert tokens("rotate").exit_code == 2
