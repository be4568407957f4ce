"""Tokens on real workers: in force everywhere within two seconds, and written nowhere."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.application import Application, WorkerProcess
from support.waiting import eventually

from light_scheduler.agents.startup import refuse_open_door
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.worker_process import worker_environment
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]
LIST = "/api/v1/tenants/shop/schedules"


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    application = await Application.create(kafka.bootstrap_servers, tmp_path)
    yield application
    application.close()


def run(application: Application, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with the application's settings."""
    environment = {**worker_environment(application.settings), **variables}
    return subprocess.run([*PROGRAM, *words], check=False, env=environment, capture_output=True, text=True, timeout=60)


def made(application: Application, *words: str) -> Any:
    answer = run(application, "tokens", *words, "--json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


async def test_a_worker_that_others_can_reach_starts_only_with_a_token_or_when_told_so(
    application: Application,
) -> None:
    name = socket.gethostname()
    refused = application.new_worker(web_host=name)
    refused.start()
    assert await refused.ended() != 0
    log = refused.log.read_text()
    assert f"other machines can reach {name}, and there is no token yet" in log
    assert "light-scheduler tokens create" in log
    await refuse_open_door(replace(refused.settings, insecure=True), name, SystemClock())
    await refuse_open_door(application.settings, "127.0.0.1", SystemClock())
    made(application, "create", "ops", "--role", "admin", "--all-tenants")
    await refuse_open_door(refused.settings, name, SystemClock())


async def status_of(session: aiohttp.ClientSession, worker: WorkerProcess, path: str, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with session.get(worker.url + path, headers=headers) as response:
        await response.read()
        return response.status


async def test_tokens_are_in_force_on_every_worker_within_two_seconds_and_written_nowhere(
    application: Application,
) -> None:
    workers = [application.new_worker(log_level="DEBUG") for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await worker.ready()
    async with aiohttp.ClientSession() as session:

        async def both(path: str, token: str | None, status: int) -> bool:
            found = [await status_of(session, worker, path, token) for worker in workers]
            return found == [status, status]

        assert await both(LIST, None, 200)
        ops = made(application, "create", "ops", "--role", "admin", "--all-tenants")["token"]
        began = time.monotonic()
        await eventually(lambda: both(LIST, None, 401), every=0.05)
        await eventually(lambda: both(LIST, ops, 200), every=0.05, what="a list over both workers")
        assert time.monotonic() - began < 10  # two seconds, with room for a busy machine

        shop = made(application, "create", "shop", "--role", "write", "--tenant", "shop")
        await eventually(lambda: both(LIST, shop["token"], 200), every=0.05)
        assert await both("/api/v1/tenants/other/schedules", shop["token"], 404)
        assert await both("/info", shop["token"], 403)

        def used() -> Any:
            listed = made(application, "list")["tokens"]
            return [token for token in listed if token["name"] == "shop" and token["last_used_at"]]

        await eventually(lambda: asyncio.to_thread(used), every=0.2, what="the last use of the token")
        made(application, "revoke", shop["about"]["id"])
        await eventually(lambda: both(LIST, shop["token"], 401), every=0.05)
        assert await both(LIST, ops, 200)
    answer = run(application, "list", "--url", workers[0].url, LIGHT_SCHEDULER_TOKEN=ops)
    assert answer.returncode == 0, answer.stderr
    processes = await asyncio.to_thread(subprocess.check_output, ["ps", "-eo", "args"], text=True)
    logs = "".join(worker.log.read_text() for worker in workers)
    for secret in (ops, shop["token"]):
        assert secret.rpartition("_")[2] not in logs + processes + answer.stdout + answer.stderr
