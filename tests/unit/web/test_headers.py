"""What every answer tells browsers, whatever the operation and however it ends."""

from __future__ import annotations

import re
from typing import Any

import pytest

from light_scheduler.web.api.operations import OPERATIONS
from light_scheduler.web.etf1.operations import ETF1_OPERATIONS

NOTHING_RUNS = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
OWN_SCRIPTS_RUN = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Of the dashboard, the only page with scripts."""
EXPECTED = {
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
ANY_SITE = re.compile("Access-Control-.*")


def assert_careful(response: Any, address: str, policy: str = NOTHING_RUNS) -> None:
    assert {name: response.headers.get(name) for name in EXPECTED} == EXPECTED, address
    assert response.headers["Content-Security-Policy"] == policy, address
    assert [name for name in response.headers if ANY_SITE.fullmatch(name)] == [], address


@pytest.mark.parametrize("body", [b"", b"{", b"[]"])
async def test_every_operation_answers_with_the_headers(workers: Any, body: bytes) -> None:
    statuses = set()
    for operation in OPERATIONS:
        path = re.sub(r"\{\w+\}", "x", operation.path)
        async with workers[0].client.request(operation.method, path, data=body) as response:
            policy = OWN_SCRIPTS_RUN if operation.path == "/" else NOTHING_RUNS
            assert_careful(response, f"{operation.method} {path}: {response.status}", policy)
            statuses.add(response.status)
    assert {200, 400} <= statuses


@pytest.mark.parametrize("operation", ETF1_OPERATIONS, ids=lambda operation: operation.name)
async def test_the_read_api_of_etf1_answers_with_the_headers_where_there_is_none(workers: Any, operation: Any) -> None:
    path = re.sub(r"\{\w+\}", "x", operation.path)
    async with workers[0].client.request(operation.method, path) as response:
        assert_careful(response, path)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("DELETE", "/live", {}, 405),
        ("GET", "/live", {"Host": "elsewhere.example"}, 421),
        ("POST", "/api/v1/tenants/x/schedules", {"Origin": "https://elsewhere.example"}, 403),
        ("HEAD", "/live", {}, 200),
    ],
)
async def test_what_is_refused_has_them_too(
    workers: Any, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    async with workers[0].client.request(method, path, headers=headers) as response:
        assert response.status == status
        assert_careful(response, path)
