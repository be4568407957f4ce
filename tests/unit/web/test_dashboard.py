"""What the worker serves for the dashboard: its files, the state of the cluster, and who asks."""

from __future__ import annotations

import re
from typing import Any

import pytest

POLICY = {"default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'"}


async def text_of(worker: Any, path: str) -> tuple[str, str]:
    """Return media type and text of a file that is served under the dashboard's policy."""
    async with worker.client.get(path) as response:
        assert response.status == 200, path
        assert set(response.headers["Content-Security-Policy"].split("; ")) >= POLICY
        return response.content_type, await response.text()


async def test_everything_that_the_page_loads_is_served_by_this_worker(workers: Any) -> None:
    kind, page = await text_of(workers[0], "/")
    assert kind == "text/html"
    to_load = re.findall(r'(?:src|rel="[a-z]+" href)="([^"]+)"', page)
    assert len(to_load) == 3
    loaded: dict[str, str] = {}
    while to_load:
        path = to_load.pop()
        loaded[path], text = await text_of(workers[0], path)
        assert not re.search(r"https?://(?!www\.w3\.org/)", text), path
        modules = [f"/dashboard/{name}" for name in re.findall(r'^(?:import|\}) .*from "\./([^"]+)"', text, re.M)]
        to_load += [module for module in modules if module not in loaded]
    assert set(loaded.values()) == {"text/javascript", "text/css", "image/svg+xml"}
    assert len(loaded) > 10


@pytest.mark.parametrize("name", ["index.html", "types.d.ts", "nothing.js", "..%2Fhandlers.py", "__init__.py"])
async def test_no_other_file_is_served(workers: Any, name: str) -> None:
    async with workers[0].client.get(f"/dashboard/{name}") as response:
        assert response.status == 404


async def test_the_cluster_is_the_info_of_all_workers(workers: Any) -> None:
    document = await workers[0].json("/api/v1/cluster")
    assert [worker["url"] for worker in document["workers"]] == sorted(worker.url for worker in workers)
    for worker in document["workers"]:
        (partitions,) = worker["partitions"].values()
        assert partitions == [lane["partition"] for lane in worker["info"]["lanes"]]
        assert worker["reason"] is None
    assert document["unowned"] == []


async def test_a_worker_that_is_gone_and_a_partition_of_nobody_are_named(workers: Any) -> None:
    gone = workers[1].url
    await workers[1].stop()
    owners = workers[0].peers.distribution
    topic = next(iter(owners[gone]))
    owners[workers[0].url][topic].append(9)
    document = await workers[0].json("/api/v1/cluster")
    reasons = {worker["url"]: worker["reason"] for worker in document["workers"] if worker["info"] is None}
    assert list(reasons) == [gone]
    assert reasons[gone] == "cannot be reached: connection refused"
    assert {"topic": topic, "partition": 8} in document["unowned"]


async def test_one_answer_serves_all_dashboards_for_a_second(workers: Any) -> None:
    first = await workers[0].json("/api/v1/cluster")
    await workers[1].stop()
    assert await workers[0].json("/api/v1/cluster") == first


async def test_a_page_learns_what_its_token_may_do(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    everyone = await worker.json("/api/v1/identity")
    assert {name: everyone[name] for name in ("name", "role", "tenants")} == {
        "name": "anonymous",
        "role": "admin",
        "tenants": None,
    }
    text = await cluster.token("read", "b", "a", name="viewer")
    identity = await worker.ask("GET", "/api/v1/identity", 200, headers={"Authorization": f"Bearer {text}"})
    assert (identity["name"], identity["role"], identity["tenants"]) == ("viewer", "read", ["a", "b"])
