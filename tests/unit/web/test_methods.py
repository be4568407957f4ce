"""Methods that a path does not have."""

from __future__ import annotations

from typing import Any

import pytest
from support.web_cluster.schedules import TOPIC

METHODS = {"get", "put", "post", "delete"}


@pytest.fixture
def commands_topics() -> str:
    return f"{TOPIC}:etf1"


async def test_a_method_that_a_path_does_not_have_is_refused_with_those_that_it_has(workers: Any) -> None:
    document = await workers[0].json("/api/v1/openapi.json")
    for path, operations in document["paths"].items():
        filled = path.format(tenant="default", id="a", name="light-scheduler", token="t-1", letter="0-1")
        for method in METHODS - operations.keys():
            async with workers[0].client.request(method, filled) as response:
                assert response.status == 405, (method, path)
                allowed = {name.lower() for name in response.headers["Allow"].split(",")}
                assert allowed - {"head"} == operations.keys(), (method, path)


@pytest.mark.parametrize("ending", ["history", "why", "pause"])
async def test_an_encoded_slash_is_part_of_the_id_whatever_follows(workers: Any, cluster: Any, ending: str) -> None:
    cluster.put(f"a/{ending}")
    cluster.put("b/c")
    path = "/api/v1/tenants/default/schedules/"
    assert (await workers[0].json(f"{path}a%2F{ending}"))["id"] == f"a/{ending}"
    assert (await workers[0].json(f"{path}b/c"))["id"] == "b/c"
