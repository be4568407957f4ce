"""A worker's HTTP server over TLS, and those who ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from support.authority import Authority

from light_scheduler.connection import HttpSecurity
from light_scheduler.connection.http_tls import client_context, server_context
from light_scheduler.connection.worker_connection import WorkerAddress
from light_scheduler.errors import ClientError
from light_scheduler.host.alive import takes_connections
from light_scheduler.settings import Settings
from light_scheduler.web.cluster.worker_http import WorkerHttp
from light_scheduler.web.server.listener import _TLS_TIMEOUTS, LimitedSite
from light_scheduler.web.server.middlewares import MIDDLEWARES
from light_scheduler.worker_page import page_of_worker


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def port(authority: Authority) -> AsyncIterator[int]:
    """The port of a server that wants certificates of `authority`."""
    pair = authority.sign("worker")
    security = HttpSecurity(
        web_ssl_certificate=pair.together, web_ssl_client_ca=authority.path, web_ssl_client_auth="required"
    )

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"{}" if request.path == "/live" else b'{"detail": "none"}', status=200)

    application = web.Application(middlewares=MIDDLEWARES)
    application.add_routes([web.get("/live", answer)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await LimitedSite(runner, "127.0.0.1", 0, tls=server_context(security)).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture
def allowed(authority: Authority) -> HttpSecurity:
    """What lets a client in."""
    return HttpSecurity(web_ssl_ca=authority.path, web_ssl_certificate=authority.sign("client").together)


async def test_every_kind_of_client_is_let_in_with_a_certificate(port: int, allowed: HttpSecurity) -> None:
    url, context = f"https://127.0.0.1:{port}", client_context(allowed)
    async with WorkerHttp(url, security=allowed) as line:
        assert await line.ask("GET", "/live") == (200, b"{}")
    assert await asyncio.to_thread(WorkerAddress(url, None, allowed).exchange, "GET", "/live") == (200, b"{}")
    worker = Settings(web_port=port, web_ssl_certificate=allowed.web_ssl_certificate, web_ssl_ca=allowed.web_ssl_ca)
    assert await asyncio.to_thread(lambda: page_of_worker(worker, "/live", timeout=60)) == b"{}"
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(f"{url}/live") as response:
        assert response.headers["Strict-Transport-Security"] == "max-age=31536000"


async def test_who_is_not_let_in_is_told_which_setting_to_change(
    port: int, authority: Authority, allowed: HttpSecurity
) -> None:
    address = f"127.0.0.1:{port}"
    cases = {
        f"https://{address} ": (HttpSecurity(), "set web_ssl_ca to the certificate of the authority"),
        f"https://{address}": (
            HttpSecurity(web_ssl_ca=authority.path),
            "If it requires a client certificate, set web_ssl_certificate and web_ssl_key",
        ),
        f"https://localhost:{port}": (allowed, "use a host that it names"),
        f"http://{address}": (HttpSecurity(), "If it speaks TLS, use https://"),
    }
    for url, (security, reason) in cases.items():
        async with WorkerHttp(url.strip(), security=security) as line:
            with pytest.raises(ClientError, match=reason):
                await line.ask("GET", "/live")
        with pytest.raises(ClientError, match=reason):
            await asyncio.to_thread(WorkerAddress(url.strip(), None, security).exchange, "GET", "/live")


async def test_whether_it_is_alive_can_be_seen_without_a_certificate_and_leaves_no_trace(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert await asyncio.to_thread(takes_connections, "127.0.0.1", port, timeout=60)
    assert caplog.messages == []


async def test_a_client_that_never_sets_up_tls_takes_no_place_for_ever(
    port: int, allowed: HttpSecurity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_TLS_TIMEOUTS, "ssl_handshake_timeout", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
