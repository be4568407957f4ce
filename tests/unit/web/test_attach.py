"""The API on Faust's own web server."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import faust
import pytest

from light_scheduler.access import AccessBook
from light_scheduler.agents.assigned_peers import AssignedPeers
from light_scheduler.agents.web_server import WebServer, web_options
from light_scheduler.clock import SystemClock
from light_scheduler.delays import DelayLaneStatus
from light_scheduler.errors import ConfigurationError
from light_scheduler.lanes.context.status import LaneStatus
from light_scheduler.model.tenant_rules import NO_TENANTS
from light_scheduler.settings import Settings
from light_scheduler.web import Worker, attach, largest_body, topics_of


class NoLanes:
    def tables(self) -> dict[tuple[str, int], object]:
        return {}

    async def catch_up(self) -> set[tuple[str, int]]:
        return set()

    def status(self) -> list[LaneStatus]:
        return []


class NoDelays:
    def lanes(self) -> list[DelayLaneStatus]:
        return []


class NoRules:
    book = NO_TENANTS


class NoTokens:
    book = AccessBook()
    is_loaded = True
    oidc = None


@pytest.fixture
def app(tmp_path: Path) -> faust.App:
    return new_app(tmp_path)


def new_app(tmp_path: Path, host: str = "127.0.0.1") -> faust.App:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        settings = Settings(web_host=host, web_port=probe.getsockname()[1], max_payload_bytes=30_000)
    options = web_options(settings, largest_body(settings))
    app = faust.App("test", broker="memory://", store="memory://", datadir=tmp_path, **options)
    lanes: Any = NoLanes()
    delays: Any = NoDelays()
    access: Any = NoTokens()
    tenants: Any = NoRules()
    peers = AssignedPeers(app)
    topics, clock = topics_of(settings, peers), SystemClock()
    worker = Worker(lanes, delays, peers, topics, settings, clock, access, tenants, examine=lambda _: [])
    attach(WebServer(app), worker)
    return app


@pytest.fixture
async def address(app: faust.App) -> AsyncIterator[str]:
    await app.web.start()
    yield f"http://127.0.0.1:{app.conf.web_port}"
    await app.web.stop()


async def test_fausts_own_pages_are_not_served(address: str) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("/table/", "/router/", "/stats/", "/graph/", "/performance/"):
            async with session.get(address + path) as response:
                assert response.status == 404, path
        async with session.get(address + "/") as response:
            assert "light-scheduler" in await response.text()


@pytest.mark.parametrize(("size", "status"), [(1_048_576, 400), (1_048_576 + 50_000, 413)])
async def test_a_body_may_be_the_largest_payload_as_base64_and_no_more(address: str, size: int, status: int) -> None:
    url = f"{address}/api/v1/tenants/default/schedules"
    async with aiohttp.ClientSession() as session, session.post(url, data=BytesIO(b" " * size)) as response:
        assert response.status == status
        assert (await response.json(content_type=None))["status"] == status


async def test_the_api_is_served_with_its_middlewares(address: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(address + "/ready") as response:
        assert response.status == 503
        assert response.content_type == "application/problem+json"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_server_binds_to_the_web_host_only(app: faust.App, address: str) -> None:
    assert app.web._runner.addresses == [("127.0.0.1", app.conf.web_port)]  # type: ignore[attr-defined]


def test_peers_are_those_of_the_last_assignment(app: faust.App) -> None:
    app.assignor.external_topic_distribution = {  # type: ignore[attr-defined]
        "http://a:1/": {"commands": [0, 1]},
        "http://b:1": {"commands": [2]},
    }
    peers = AssignedPeers(app)
    owners = peers.owners()
    assert owners == {"http://a:1": {"commands": [0, 1]}, "http://b:1": {"commands": [2]}}
    assert peers.owners() is owners
    app.assignor.external_topic_distribution = {"http://a:1": {"commands": [0, 1, 2]}}  # type: ignore[attr-defined]
    assert peers.owners() == {"http://a:1": {"commands": [0, 1, 2]}}


def test_the_own_url_is_the_one_that_faust_worker_was_started_with(app: faust.App) -> None:
    peers = AssignedPeers(app)
    # As `faust worker --web-port` does it, after the app was put together.
    app.conf.canonical_url = "http://c:2/"  # type: ignore[assignment]
    assert peers.own_url == "http://c:2"


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6_loopback(), reason="this machine has no IPv6 loopback address")
async def test_an_ipv6_address_is_bound_to_and_written_in_brackets_for_other_workers(tmp_path: Path) -> None:
    app = new_app(tmp_path, "::1")
    own_url = AssignedPeers(app).own_url
    assert own_url == f"http://[::1]:{app.conf.web_port}"
    await app.web.start()
    try:
        async with aiohttp.ClientSession() as session, session.get(own_url + "/live") as response:
            assert response.status == 200
    finally:
        await app.web.stop()


async def test_a_host_that_others_cannot_reach_is_refused_also_as_an_option_of_faust(app: faust.App) -> None:
    # As `faust worker --web-host` does it.
    app.conf.canonical_url = f"http://0.0.0.0:{app.conf.web_port}"  # type: ignore[assignment]
    with pytest.raises(ConfigurationError, match=r"0\.0\.0\.0"):
        await app.web.start_server()  # type: ignore[attr-defined]
