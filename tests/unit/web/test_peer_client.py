"""Asking other workers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from light_scheduler.clock import SystemClock
from light_scheduler.web.cluster.peer_client import MOST_CONNECTIONS, PeerClient


async def test_a_worker_that_hangs_holds_up_no_question_to_another_one(workers: Any) -> None:
    timeout = aiohttp.ClientTimeout(total=30)
    access: Any = SimpleNamespace(book=SimpleNamespace(peer_secret=None))
    with socket.create_server(("127.0.0.1", 0), backlog=MOST_CONNECTIONS) as hangs:
        place = URL(f"http://127.0.0.1:{hangs.getsockname()[1]}/live")
        async with PeerClient(access, SystemClock(), ssl.create_default_context()) as client:

            async def ask(address: URL) -> int:
                async with client.get(address, timeout) as response:
                    return response.status

            waiting = [asyncio.create_task(ask(place)) for _ in range(2 * MOST_CONNECTIONS)]
            try:
                await asyncio.sleep(0)  # they are asked first
                assert await ask(workers[0].client.make_url("/live")) == 200
                assert not any(task.done() for task in waiting)
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
