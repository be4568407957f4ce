"""Rules of tenants on a real worker: changed on the command line, in force without a restart."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import aiohttp
import pytest
from support.application import Application
from support.reading import read_until
from support.waiting import eventually

from light_scheduler.devkit.worker_process import worker_environment

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()", "tenants"]
TENANTS = "/api/v1/tenants"


async def changed(application: Application, *words: str) -> Any:
    """Change a tenant on the command line, and wait until the worker has noticed."""
    command = [*PROGRAM, *words, "--json"]
    environment = worker_environment(application.settings)
    answer = await asyncio.to_thread(
        subprocess.run, command, check=False, env=environment, capture_output=True, text=True, timeout=60
    )
    assert answer.returncode == 0, answer.stderr
    tenant = json.loads(answer.stdout)

    async def is_known() -> bool:
        listed = await application.workers[-1].get(TENANTS)
        return tenant in listed["tenants"]

    await eventually(is_known, every=0.05, what="the change on the worker")
    return tenant


async def put(application: Application, id: str, tenant: str = "shop", **body: Any) -> tuple[int, Any]:
    url = f"{application.workers[-1].url}{TENANTS}/{tenant}/schedules/{id}"
    async with aiohttp.ClientSession() as session, session.put(url, json=body) as response:
        return response.status, await response.json(content_type=None)


async def pending(application: Application) -> int:
    info = await application.workers[-1].get("/info")
    return sum(lane["pending"] for lane in info["lanes"])


@pytest.mark.soak
async def test_rules_hold_live_a_paused_tenant_waits_over_a_restart_and_a_deleted_one_is_emptied(
    served: Application,
) -> None:
    target = served.target
    await changed(served, "set", "shop", "--target", target, "--default-target", target, "--max-payload-bytes", "100")
    await changed(served, "set", "shop", "--distribution", "partition:2")
    later: Any = {"trigger": {"after": "1h"}}
    status, problem = await put(served, "elsewhere", **later, target={"topic": "elsewhere"})
    assert (status, problem["parameter"]) == (400, "target.topic")
    assert "do not allow the target elsewhere" in problem["detail"]
    assert (await put(served, "large", **later, payload={"text": "x" * 101}))[0] == 400

    await changed(served, "pause", "shop")
    assert (await put(served, "waits", trigger={"after": "0s"}, payload={"text": "x"}))[0] == 201
    await served.workers[-1].end()
    await served.start_worker()
    async with served.sender() as send:
        await send("other", b"x", after=0, target_topic=target)
    await read_until(served.bootstrap_servers, [target], lambda records: len(records) == 1)
    await served.workers[-1].shows(lambda info: sum(lane["pending"] for lane in info["lanes"]) == 1)
    await changed(served, "resume", "shop")
    delivered = await read_until(served.bootstrap_servers, [target], lambda records: len(records) == 2)
    assert {record.key for record in delivered} == {b"other", b"waits"}
    assert [record.partition for record in delivered if record.key == b"waits"] == [2]

    await changed(served, "set", "shop", "--max-pending", "0")
    status, problem = await put(served, "full", **later)
    assert (status, problem["type"].rpartition(":")[2], problem["parameter"]) == (
        429,
        "quota-exceeded",
        "quota.max_pending",
    )
    await served.workers[-1].shows(lambda info: sum(lane["over_quota"] for lane in info["lanes"]) == 1)
    await changed(served, "set", "shop", "--lift", "max-pending")

    await changed(served, "set", "shop", "--commands-per-second", "4", "--over-rate", "delay")
    async with asyncio.TaskGroup() as group:
        delayed = [group.create_task(put(served, f"delayed-{number}", **later)) for number in range(12)]
    assert {task.result()[0] for task in delayed} == {201}
    await served.workers[-1].shows(lambda info: sum(lane["delayed"] for lane in info["lanes"]) > 0)
    await served.workers[-1].shows(lambda info: sum(lane["waiting"] for lane in info["lanes"]) == 0)
    await changed(served, "set", "shop", "--lift", "commands-per-second", "--lift", "over-rate")

    for number in range(3):
        assert (await put(served, f"{number}", **later))[0] == 201
    await changed(served, "delete", "shop", "--yes")
    await eventually(lambda: is_empty(served), what="the schedules of the deleted tenant to be removed")
    status, problem = await put(served, "more", **later)
    assert (status, problem["result"]["reason"]) == (400, "tenant shop was deleted")
    expected = sorted(["0", "1", "2", *(f"delayed-{n}" for n in range(12))])

    async def removed() -> list[str] | None:
        """Return what history tells to be removed once that is everything: it can be read a moment later."""
        events = [event for event in await served.history() if event.reason == "its tenant was deleted"]
        return sorted(str(event.id) for event in events) if len(events) >= len(expected) else None

    assert await eventually(removed, every=0.1, what="the removals in the history") == expected


async def test_a_name_that_nobody_has_used_can_be_deleted_over_http_and_its_commands_are_rejected(
    served: Application,
) -> None:
    unused = f"{served.workers[-1].url}{TENANTS}/never-used"
    later: Any = {"trigger": {"after": "1h"}}
    async with aiohttp.ClientSession() as session:
        async with session.delete(unused) as response:
            assert (response.status, (await response.json())["state"]) == (200, "deleted")
        status, problem = await put(served, "a", "never-used", **later, target={"topic": served.target})
        assert (status, problem["result"]["reason"]) == (400, "tenant never-used was deleted")
        async with session.post(f"{unused}/resume") as response:
            assert response.status == 200
    assert (await put(served, "a", "never-used", **later, target={"topic": served.target}))[0] == 201


async def is_empty(application: Application) -> bool:
    return await pending(application) == 0
