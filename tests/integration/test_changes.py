"""Changes of tenants, tokens and delay rules, over HTTP and on the command line: the history tells of each."""

from __future__ import annotations

import asyncio
import getpass
import json
import socket
import subprocess
import sys
from typing import Any

import aiohttp
import pytest
from support.application import Application
from support.waiting import eventually

from light_scheduler.devkit.worker_process import worker_environment
from light_scheduler.model import EventType

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]
CALLER = (f"command line ({getpass.getuser()})", socket.gethostname())


async def run(application: Application, *words: str, token: str = "") -> str:
    """Run the command line beside the loop, and return what it prints."""
    environment = worker_environment(application.settings) | ({"LIGHT_SCHEDULER_TOKEN": token} if token else {})
    answer = await asyncio.to_thread(
        subprocess.run,
        [*PROGRAM, *words, "--json"],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


async def test_each_change_is_told_once_with_who_and_from_where_and_no_secret(served: Application) -> None:
    url = served.workers[-1].url
    await run(served, "tenants", "set", "shop", "--max-pending", "100", "--target", "a", "--target", "b-*")
    await run(served, "tenants", "set", "shop", "--max-pending", "200", "--lift", "target")
    await run(served, "tenants", "pause", "shop")
    ops = json.loads(await run(served, "tokens", "create", "ops", "--role", "admin", "--all-tenants"))
    headers = {"Authorization": f"Bearer {ops['token']}"}

    async with aiohttp.ClientSession(url, headers=headers) as session:

        async def ask(method: str, path: str, **body: Any) -> Any:
            async with session.request(method, f"/api/v1/{path}", json=body or None) as response:
                assert response.status < 300, await response.text()
                return None if response.status == 204 else await response.json(content_type=None)

        async def is_admitted() -> bool:
            async with session.get("/api/v1/tokens") as response:
                return response.status == 200

        await eventually(is_admitted, every=0.05, what="the token on the worker")
        ci = await ask("POST", "tokens", name="ci", role="write", tenants=["shop"])
        again = await ask("POST", f"tokens/{ci['about']['id']}/rotate?keep=0")
        await ask("PUT", "delays/later", source="carts", delay="24h", target="carts-left")
        await ask("PUT", "delays/later", source="carts", delay="48h", target="carts-left")
        await ask("DELETE", "delays/later")
        await ask("POST", "tenants/shop/resume")
        await ask("DELETE", f"tokens/{ci['about']['id']}")
        listed = (await ask("GET", "changes"))["changes"]
    await run(served, "tokens", "rotate", ops["about"]["id"], "--keep", "1h")
    lines = await run(served, "history", "--changes", "--url", url, token=ops["token"])

    token, mine = f"token {ci['about']['id']} (ci)", f"token {ops['about']['id']} (ops)"
    over_http = ("ops", "127.0.0.1")
    expected = [
        ("shop", "rules of tenant shop: targets none -> a,b-*, max_pending none -> 100", CALLER),
        ("shop", "rules of tenant shop: targets a,b-* -> none, max_pending 100 -> 200", CALLER),
        ("shop", "tenant shop: active -> paused", CALLER),
        ("", f"{mine} created: admin for all tenants, does not expire", CALLER),
        ("shop", f"{token} created: write for shop, does not expire", over_http),
        ("shop", f"{token} rotated: the secret before is not valid any more", over_http),
        ("", "delay rule later added: carts -1d-> carts-left", over_http),
        ("", "delay rule later: delay 1d -> 2d", over_http),
        ("", "delay rule later removed: it was carts -2d-> carts-left", over_http),
        ("shop", "tenant shop: paused -> active", over_http),
        ("shop", f"{token} revoked: it was write for shop", over_http),
    ]
    assert [(each["tenant"], each["reason"], (each["by"], each["address"])) for each in reversed(listed)] == expected
    told = [event for event in await served.history() if event.event is EventType.CHANGED]
    assert [event.reason for event in told[:-1]] == [reason for _, reason, _ in expected]
    assert str(told[-1].reason).startswith(f"{mine} rotated: the secret before is valid until ")
    assert [json.loads(line)["reason"] for line in lines.splitlines()] == [event.reason for event in reversed(told)]
    everything = json.dumps(listed) + lines
    for text in (ops["token"], ci["token"], again["token"]):
        assert text.split("_", 2)[2] not in everything
    pending = await run(served, "history", "--changes", "--tenant", "other", "--url", url, token=ops["token"])
    assert pending == ""
