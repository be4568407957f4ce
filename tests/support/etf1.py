"""etf1's own scheduler, a producer with its client library, and its admin: where they are, and processes of them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from light_scheduler.clock import SystemClock
from light_scheduler.devkit.leash import Leash
from light_scheduler.host.ports import free_port

from .waiting import eventually

HOUR_MS = 3_600_000

PROGRAM = "kafka-message-scheduler"
CLIENT = "etf1-client"
ADMIN = "kafka-message-scheduler-admin"
CLIENT_SOURCE = Path(__file__).with_name("etf1_client.go")
BUILT = Path(__file__).parents[2] / "build" / "etf1"
"""Where `make etf1` puts programs that are not on the path."""

PAGES = BUILT / "admin-pages"
"""The admin's web pages."""

CLIENT_S = 30


def find(program: str) -> str | None:
    """Return the path of a program, if it is there."""
    return shutil.which(program) or shutil.which(program, path=BUILT)


def required(program: str) -> str:
    """Return the path of a program; skip the test where there is none."""
    path = find(program)
    if path is None:
        pytest.skip(f"{program} is not built: `make etf1` does, where there are Go, a C compiler and etf1's source")
    return path


async def book_with_client(bootstrap_servers: str, target: str, due: int, topics: Sequence[str]) -> None:
    """Have etf1's own client write its records, due at an instant (s), to topics."""
    client = await asyncio.create_subprocess_exec(
        required(CLIENT), bootstrap_servers, target, f"{due}", *topics, stderr=asyncio.subprocess.PIPE
    )
    _, complaints = await asyncio.wait_for(client.communicate(), CLIENT_S)
    assert client.returncode == 0, complaints.decode()


class Etf1Scheduler:
    """It runs: `url` is the address of its HTTP server."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def schedules(self) -> list[dict[str, Any]]:
        """Return what it has in memory."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/schedules") as response:
            assert response.status == 200
            found: list[dict[str, Any]] = await response.json()
            return found


@asynccontextmanager
async def etf1_scheduler(bootstrap_servers: str, topic: str, history: str, log: Path) -> AsyncIterator[Etf1Scheduler]:
    """Run it on a topic until the context ends; it has connected by then, and may not have read the topic yet."""
    port = free_port()
    environment = os.environ | {
        "BOOTSTRAP_SERVERS": bootstrap_servers,
        "GROUP_ID": f"{topic}-group",
        "SCHEDULES_TOPICS": topic,
        "HISTORY_TOPIC": history,
        "SERVER_ADDR": f"127.0.0.1:{port}",
        "METRICS_ADDR": f"127.0.0.1:{free_port()}",
        "TZ": zone_of_noon(SystemClock().now()),
    }
    scheduler = Etf1Scheduler(f"http://127.0.0.1:{port}")
    async with _running(PROGRAM, environment, log, f"{scheduler.url}/schedules"):
        yield scheduler


@asynccontextmanager
async def etf1_admin(scheduler_url: str, folder: Path) -> AsyncIterator[str]:
    """Run the admin for a scheduler, in an empty folder, until the context ends; give the URL of its API."""
    address = f"127.0.0.1:{free_port()}"
    environment = os.environ | {
        "SCHEDULERS_ADDR": scheduler_url.removeprefix("http://"),
        "SERVER_ADDR": address,
        "METRICS_ADDR": f"127.0.0.1:{free_port()}",
        "STATIC_FILES_DIR": str(PAGES),
        "DATA_ROOT_DIR": str(folder / "databases"),
        "LOG_LEVEL": "error",
    }
    url = f"http://{address}/api"
    async with _running(ADMIN, environment, folder / "admin.log", f"{url}/schedulers"):
        yield url


@asynccontextmanager
async def _running(program: str, environment: Mapping[str, str], log: Path, url: str) -> AsyncIterator[None]:
    """Run a program until the context ends; a URL of it answers by then."""
    with log.open("wb") as output:
        process = Leash((required(program),), environment=environment, output=output)

    async def is_up() -> bool:
        assert process.poll() is None, f"it has ended, see {log}"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    try:
        await eventually(is_up, every=0.05, what=program)
        yield
    finally:
        process.kill()


def zone_of_noon(instant: int) -> str:
    """Return the time zone in which an instant is about noon: the program knows only what is due on the same day."""
    east = 12 - instant // HOUR_MS % 24
    return f"Etc/GMT{-east:+d}" if east else "Etc/GMT"
