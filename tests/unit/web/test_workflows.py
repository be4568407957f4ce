"""Sequences of requests that follow all links of the OpenAPI document, with all checks of schemathesis.

`tests/integration/test_access.py` follows those within an area, on real workers. Here a tenant leads to its schedules,
a list to its first row, and a task of light-4j to the list of tasks.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import requests
from support.api_workflows import Topics, Walk
from support.web_cluster.schedules import TOPIC

from .test_dead_letters import add_letter

LEAST = 10
"""Operations that sequences have succeeded with."""


@pytest.fixture(params=["native", "etf1", "light4j"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def commands_topics(dialect: str) -> str:
    return TOPIC if dialect == "native" else f"{TOPIC}:{dialect}"


@pytest.mark.timeout(300)
async def test_sequences_of_requests_that_follow_all_links_pass_every_check(
    cluster: Any, workers: Any, request: pytest.FixtureRequest
) -> None:
    is_long = request.config.getoption("--soak")
    token = await cluster.token("admin")
    add_letter(cluster)
    cluster.put("a")
    walk = Walk(
        str(workers[0].client.make_url("")).rstrip("/"),
        token,
        Topics(TOPIC, "source", "out"),
        clock=cluster.clock,
        keeps_tenants=True,
    )

    def follow() -> None:
        place = f"{walk.url}/api/v1/openapi.json"
        document = requests.get(place, headers=walk.credentials, timeout=10).json()
        walk.follow(document, None, sequences=20 if is_long else 3, steps=40 if is_long else 20)

    await asyncio.to_thread(follow)
    assert len(walk.succeeded) >= LEAST, walk.steps
