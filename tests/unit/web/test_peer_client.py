"""Asking other workers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from light_scheduler.clock import SystemClock
from light_scheduler.web.cluster import peer_client
from light_scheduler.web.cluster.peer_client import MOST_CONNECTIONS, PeerClient

NO_SECRET: Any = SimpleNamespace(book=SimpleNamespace(peer_secret=None))


async def test_a_worker_that_hangs_holds_up_no_question_to_another_one(workers: Any) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=MOST_CONNECTIONS) as hangs:
        place = URL(f"http://127.0.0.1:{hangs.getsockname()[1]}/live")
        async with PeerClient(NO_SECRET, SystemClock(), ssl.create_default_context()) as client:

            async def ask(address: URL) -> int:
                async with client.get(address, 30) as response:
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


async def test_questions_that_wait_for_a_connection_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_client, "CONNECT_TIMEOUT_S", 0.5)
    asked, answers = asyncio.Semaphore(0), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        asked.release()
        await answers.wait()
        return web.Response()

    application = web.Application()
    application.router.add_get("/", answer)
    async with (
        TestServer(application) as worker,
        PeerClient(NO_SECRET, SystemClock(), ssl.create_default_context()) as client,
    ):

        async def ask() -> int:
            async with client.get(worker.make_url("/"), 60) as response:
                return response.status

        questions = [asyncio.create_task(ask()) for _ in range(2 * MOST_CONNECTIONS)]
        for _ in range(MOST_CONNECTIONS):
            await asked.acquire()
        await asyncio.sleep(2 * peer_client.CONNECT_TIMEOUT_S)  # the others wait longer than a connection may take
        answers.set()
        assert await asyncio.gather(*questions) == [200] * len(questions)
