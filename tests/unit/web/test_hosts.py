"""Which hosts a worker answers as."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from light_scheduler.host.loopback import is_loopback
from light_scheduler.settings import Settings, load_settings
from light_scheduler.web.server.hosts import host_name

LIST = "/api/v1/tenants/default/schedules"


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Worker-1:6066", "worker-1"),
        ("worker.", "worker"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:6066", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[FE80::1%eth0]:1", "fe80::1%eth0"),
        ("", None),
        ("a b", None),
        ("::1", None),
        ("user@host", None),
        ("a/b", None),
        ("a:b", None),
    ],
)
def test_a_host_header_is_a_name_or_an_address_and_a_port(header: str, name: str | None) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize("name", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_has_many_names(name: str) -> None:
    assert is_loopback(name)


@pytest.mark.parametrize(
    "name", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0"]
)
def test_nothing_else_is_loopback(name: str) -> None:
    assert not is_loopback(name)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("[::1]:6066", 200),
        ("worker-7.internal:6066", 200),
        ("SCHEDULER.example", 200),
        ("evil.example", 421),
        ("evil.example:6066", 421),
        ("127.0.0.1.evil.example", 421),
        ("10.1.2.3", 421),
        ("a b", 400),
    ],
)
async def test_only_its_own_names_are_answered_for_reads_and_for_writes(
    cluster: Any, method: str, host: str, status: int
) -> None:
    cluster.settings = Settings(web_host="worker-7.internal", web_allowed_hosts=("scheduler.EXAMPLE",))
    (worker,) = await cluster.start([0])
    path, body = (LIST, None) if method == "GET" else ("/api/v1/preview", {"trigger": {"every": "1m"}})
    document = await worker.ask(method, path, status, body, headers={"Host": host})
    if status != 200:
        assert document["status"] == status
        assert status == 400 or "web_allowed_hosts" in document["detail"]


async def test_health_and_metrics_are_no_exception(workers: Any) -> None:
    for path in ("/", "/live", "/ready", "/info", "/metrics"):
        document = await workers[0].ask("GET", path, 421, headers={"Host": "evil.example"})
        assert document["type"] == "urn:light-scheduler:problem:misdirected-request"


async def test_a_page_that_names_itself_in_origin_and_host_changes_nothing(workers: Any) -> None:
    headers = {"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}
    await workers[0].ask("DELETE", f"{LIST}/a", 421, headers=headers)
    assert workers[0].commands.seen == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /live HTTP/1.0\r\n\r\n", "200"),
        ("HEAD /live HTTP/1.0\r\n\r\n", "200"),
        ("POST /api/v1/preview HTTP/1.0\r\nContent-Length: 0\r\n\r\n", "400"),
        ("POST /api/v1/preview HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "200"),
        (f"DELETE {LIST}/a HTTP/1.0\r\n\r\n", "400"),
        ("GET /live HTTP/1.1\r\nConnection: close\r\n\r\n", "400"),
        ("GET /live HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "400"),
    ],
)
async def test_a_request_has_one_host_unless_it_is_an_old_one_that_reads(workers: Any, head: str, status: str) -> None:
    server = workers[0].client.server
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    assert answer.split()[1].decode() == status


def test_an_address_in_brackets_is_the_address() -> None:
    settings = load_settings({"web_host": "[::1]", "web_allowed_hosts": "a, [fd00::1],b.c"}, environment={})
    assert settings.web_host == "::1"
    assert settings.web_allowed_hosts == ("a", "fd00::1", "b.c")
