"""What lanes that begin at the same time learn of their changelog costs one client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.agents import changelog_facts as module
from light_scheduler.agents.changelog_facts import ChangelogFactsLookUp
from light_scheduler.tables.usable_copy import ChangelogFacts


async def test_lanes_that_begin_at_the_same_time_share_one_administration_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients: list[object] = []

    def admin_client(_: object) -> object:
        clients.append(object())
        return clients[-1]

    def topic_id(*_: object, admin: object) -> str:
        assert admin is clients[-1]
        return "id"

    def topic_configuration(*_: object, admin: object) -> Any:
        assert admin is clients[-1]
        return SimpleNamespace(delete_retention_ms=5)

    monkeypatch.setattr(module, "admin_client", admin_client)
    monkeypatch.setattr(module, "topic_id", topic_id)
    monkeypatch.setattr(module, "topic_configuration", topic_configuration)
    facts = ChangelogFactsLookUp("127.0.0.1:9")
    assert await asyncio.gather(*(facts("changelog") for _ in range(12))) == [ChangelogFacts("id", 5)] * 12
    assert len(clients) == 1
