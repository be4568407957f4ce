"""Every operation of the OpenAPI document, asked by everybody: who may, and who learns nothing of others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import aiohttp
import pytest

from light_scheduler.model import DeadLetter, DeadLetterCause, Requester
from light_scheduler.settings import Settings
from light_scheduler.settings.values import CommandsTopic
from light_scheduler.web.access.rights import RIGHTS
from light_scheduler.web.api.openapi import openapi_document
from light_scheduler.web.api.operations import OPERATIONS
from light_scheduler.web.etf1.operations import ETF1_OPERATIONS, with_etf1
from light_scheduler.web.events import EVENTS_MEDIA_TYPE
from light_scheduler.web.light4j.operations import LIGHT4J_OPERATIONS
from light_scheduler.wire import encode_dead_letter

NOW = 1_800_000_000_000
DAY = 86_400_000
PATHS: dict[str, dict[str, Any]] = openapi_document("1", (*with_etf1(OPERATIONS), *LIGHT4J_OPERATIONS))["paths"]
ONCE = {"trigger": {"at": NOW + DAY}, "target": {"topic": "out"}, "payload": {"text": "x"}}

# What is expected, told by path and not by the table that is tested. Other paths name a tenant.
OPEN = {"/live", "/ready", "/liveness"}
FOR_ANY_TENANT = {
    "/",
    "/api/v1/identity",
    "/api/v1/openapi.json",
    "/api/v1/preview",
    "/api/v1/dry-run",
    "/api/v1/dead-letters",
    "/api/v1/overview",
    "/api/v1/events",
    "/schedulers",
}
OF_ONE_TENANT = {"/api/v1/dead-letters/{letter}", "/api/v1/dead-letters/{letter}/redrive"}
FOR_ALL_TENANTS = {
    "/info",
    "/api/v1/upcoming",
    "/api/v1/cluster",
    "/api/v1/tenants",
    "/api/v1/delays",
    "/api/v1/delays/{name}",
    *(each.path for each in ETF1_OPERATIONS),
}
ABOUT_TENANTS = {"/api/v1/tenants/{tenant}" + verb for verb in ("", "/pause", "/resume")}
FOR_ADMINS_OF_SOME = {"/api/v1/changes"}
FOR_ADMINS = {
    "/api/v1/configuration",
    "/api/v1/doctor",
    "/api/v1/tokens",
    "/api/v1/tokens/{token}",
    "/api/v1/tokens/{token}/rotate",
}
RANKS = ("metrics", "read", "write", "admin")


LETTERS = {"a": "0-0", "b": "0-1"}


class Asked(NamedTuple):
    """An operation, as it is asked of a tenant's schedules."""

    method: str
    path: str
    tenant: str

    @property
    def url(self) -> str:
        filled = {
            "tenant": self.tenant,
            "id": "a",
            "name": "fixed",
            "token": "0" * 12,
            "letter": LETTERS.get(self.tenant, "0-9"),
        }
        return re.sub(r"{(\w+)}", lambda match: filled[match[1]], self.path)

    @property
    def body(self) -> Any:
        if self.method in ("get", "delete"):
            return None
        if self.path.endswith(("/schedules", "/schedules/{id}")):
            return ONCE
        if self.path.endswith(":batch"):
            return ONCE
        if ":" in self.path:
            return {"id": "*", **({"trigger": {"after": "1h"}} if self.path.endswith("reschedule") else {})}
        return {
            "/schedulers": {
                "host": self.tenant,
                "name": "a",
                "action": "INSERT",
                "frequency": {"timeUnit": "DAYS", "time": 1},
                "topic": "out",
            },
            "/api/v1/tokens": {"name": "more", "role": "admin", "tenants": None},
            "/api/v1/tenants/{tenant}": {"weight": 2},
            "/api/v1/delays/{name}": {"source": "x", "delay": "1s", "target": "y"},
            "/api/v1/preview": {"trigger": {"every": "1h"}, "tenant": self.tenant},
            "/api/v1/dry-run": {**ONCE, "id": "a", "tenant": self.tenant},
        }.get(self.path, {"trigger": {"after": "1h"}} if self.path.endswith("reschedule") else b"")

    def expected(self, role: str | None, tenants: tuple[str, ...]) -> int | None:
        """Return the status of the refusal; None: it is carried out, or fails for other reasons."""
        if self.path in OPEN:
            return None
        if role is None:
            return 401
        is_read = self.method == "get" or self.path in ("/api/v1/preview", "/api/v1/dry-run")
        if self.path == "/metrics":
            return 403 if tenants else None
        if self.path in FOR_ADMINS_OF_SOME:
            return None if role == "admin" else 403
        if self.path in FOR_ADMINS or (self.path in FOR_ALL_TENANTS and not is_read):
            return None if role == "admin" and not tenants else 403
        if self.path in FOR_ALL_TENANTS:
            return None if RANKS.index(role) >= 1 and not tenants else 403
        names_tenant = "{tenant}" in self.path or self.method == "post" or self.path in OF_ONE_TENANT
        if "{tenant}" in self.path and tenants and self.tenant not in tenants:
            return 404
        if self.path in ABOUT_TENANTS and not is_read:
            return None if role == "admin" and not tenants else 403
        if RANKS.index(role) < (1 if is_read else 2):
            return 403
        return 404 if names_tenant and tenants and self.tenant not in tenants else None


def operations(*tenants: str) -> Iterator[Asked]:
    for path, methods in PATHS.items():
        for method in methods:
            for tenant in tenants:
                yield Asked(method, path, tenant)


def test_each_operation_has_one_right_and_each_right_an_operation() -> None:
    pages = {"login", "log_in", "log_out", "dashboard_file", "take_rates"}
    assert {each.name for each in (*OPERATIONS, *ETF1_OPERATIONS, *LIGHT4J_OPERATIONS)} | pages == RIGHTS.keys()
    known = OPEN | FOR_ANY_TENANT | OF_ONE_TENANT | FOR_ALL_TENANTS | FOR_ADMINS_OF_SOME | FOR_ADMINS | {"/metrics"}
    assert {path for path in PATHS if "{tenant}" not in path} == known


HOLDERS = {
    "nobody": None,
    "metrics": ("metrics",),
    "read of a": ("read", "a"),
    "write of a": ("write", "a"),
    "admin of a": ("admin", "a"),
    "read of a and b": ("read", "a", "b"),
    "read": ("read",),
    "write": ("write",),
    "admin": ("admin",),
}


@pytest.fixture
async def served(cluster: Any) -> Any:
    """Return a cluster with all operations, in which one token was made."""
    names = {"light-scheduler-commands": "native", "other": "etf1", "tasks": "light4j"}
    topics = tuple(CommandsTopic(name, dialect) for name, dialect in names.items())
    cluster.settings = Settings(commands_topics=topics)
    await cluster.start([0, 1])
    await cluster.token("admin", name="first")
    for tenant in LETTERS:
        letter = DeadLetter(DeadLetterCause.REFUSED, "", None, tenant, "a", NOW, NOW, "out", 0, 0, b"k", b"", [])
        cluster.topics.add("light-scheduler-dead-letters", *encode_dead_letter(letter, "light-scheduler-commands"))
    return cluster


async def text_of(response: aiohttp.ClientResponse) -> str:
    """Return the body, or the first event of a stream that does not end."""
    if response.content_type != EVENTS_MEDIA_TYPE:
        return await response.text()
    return (await response.content.readuntil(b"\n\n")).decode()


async def answered(cluster: Any, asked: Asked, headers: dict[str, str]) -> tuple[int, Any]:
    worker = cluster.workers[0]
    data = asked.body if isinstance(asked.body, bytes | None) else json.dumps(asked.body).encode()
    async with worker.client.request(asked.method, asked.url, data=data, headers=headers) as response:
        text = await text_of(response)
        if response.status in (401, 403):
            assert response.headers["WWW-Authenticate"].startswith("Bearer ")
        return response.status, json.loads(text) if response.content_type.endswith("json") else text


async def everything_of(cluster: Any, asked: Asked, headers: dict[str, str]) -> str:
    """Return all of an answer that may differ: status, headers, body."""
    worker = cluster.workers[0]
    data = asked.body if isinstance(asked.body, bytes | None) else json.dumps(asked.body).encode()
    async with worker.client.request(asked.method, asked.url, data=data, headers=headers) as response:
        told = {name: value for name, value in response.headers.items() if name not in ("Date", "Content-Length")}
        return f"{response.status} {told} {await text_of(response)}"


def state_of(cluster: Any) -> Any:
    """Return what requests can change."""
    (worker,) = cluster.workers
    written = sum(map(len, cluster.topics.records.get("out", [])))
    return written, len(worker.commands.seen), dict(worker.delays.rules), dict(worker.access.book.tokens)


@pytest.mark.parametrize("holder", HOLDERS)
async def test_everybody_may_do_what_they_may_and_nothing_else(served: Any, holder: str) -> None:
    role, *tenants = HOLDERS[holder] or (None,)
    headers = {} if role is None else {"Authorization": f"Bearer {await served.token(role, *tenants)}"}
    for asked in operations("a", "b"):
        expected, before = asked.expected(role, tuple(tenants)), state_of(served)
        status, document = await answered(served, asked, headers)
        if expected is not None:
            assert (status, document["status"]) == (expected, expected), (asked, document)
            assert state_of(served) == before, asked
        else:
            assert status not in (401, 403), (asked, document)
            assert "no tenant" not in str(document), asked


@pytest.mark.parametrize("kind", ["forged", "expired", "revoked", "garbled", "basic", "two words", "empty"])
async def test_whoever_has_no_token_that_is_valid_gets_nowhere(served: Any, kind: str) -> None:
    text = await served.token("admin", lifetime=DAY)
    right = f"Bearer {text}"
    store = served.workers[0].access.store
    if kind == "expired":
        served.clock.advance(DAY)
    elif kind == "revoked":
        await store.revoke(text.split("_")[1], by=Requester("test", ""))
    header = {
        "forged": f"Bearer {text[:-8]}AAAAAAAA",
        "garbled": "Bearer ÿ".encode().decode("latin-1"),
        "basic": f"Basic {text}",
        "two words": f"{right} {text}",
        "empty": "Bearer",
    }.get(kind, right)
    for asked in operations("a"):
        before = state_of(served)
        status, _ = await answered(served, asked, {"Authorization": header})
        assert (status == 401) == (asked.path not in OPEN), asked
        assert state_of(served) == before


async def test_unknown_paths_and_methods_are_told_to_nobody_without_a_token(served: Any) -> None:
    (worker,) = served.workers
    for method, path in (("GET", "/nowhere"), ("PATCH", "/info"), ("OPTIONS", "/info"), ("POST", "/live")):
        await worker.ask(method, path, 401)
    headers = {"Authorization": f"Bearer {await served.token('metrics')}"}
    await worker.ask("GET", "/nowhere", 404, headers=headers)
    await worker.ask("PATCH", "/info", 405, headers=headers)


async def test_without_any_token_everybody_may_do_everything_but_make_one(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    for asked in operations("a"):
        if asked.path in {each.path for each in (*ETF1_OPERATIONS, *LIGHT4J_OPERATIONS)}:
            continue
        status, document = await answered_open(cluster, asked)
        changes_tokens = "token" in asked.path and asked.method != "get"
        assert (status == 403) == changes_tokens, (asked, document)
    assert not worker.access.book.is_set_up


async def answered_open(cluster: Any, asked: Asked) -> tuple[int, Any]:
    worker = cluster.workers[0]
    data = asked.body if isinstance(asked.body, bytes | None) else json.dumps(asked.body).encode()
    async with worker.client.request(asked.method, asked.url, data=data) as response:
        return response.status, await text_of(response)


class TestOfAnotherTenant:
    """Tenant b has schedules, `nowhere` has none; a's tokens see no difference between the two."""

    @pytest.fixture
    async def shared(self, cluster: Any) -> Any:
        await cluster.start([0, 2], [1, 3])
        for number in range(8):
            cluster.put(f"hidden-{number}", partition=number % 4, tenant="b", payload=b"hidden", labels={"hidden": "1"})
            cluster.put(f"own-{number}", partition=number % 4, tenant="a")
        return cluster

    @pytest.mark.parametrize("role", ["read", "write", "admin"])
    async def test_no_operation_tells_or_changes_anything(self, shared: Any, role: str) -> None:
        headers = {"Authorization": f"Bearer {await shared.token(role, 'a')}"}
        before = {lane: table.pending for lane, table in shared.tables().items()}
        for asked in operations("b"):
            here = await everything_of(shared, asked, headers)
            nowhere = await everything_of(shared, asked._replace(tenant="nowhere"), headers)
            assert here.replace("'b'", "'nowhere'").replace("letter 0-1", "letter 0-9") == nowhere, asked
            assert "hidden" not in here, asked
        assert shared.workers[0].commands.seen == []
        assert {lane: table.pending for lane, table in shared.tables().items()} == before

    @pytest.mark.parametrize("kind", ["expired", "revoked", "forged", "rotated away", "of nobody"])
    async def test_a_token_of_its_own_that_is_valid_no_more_learns_nothing_of_it_either(
        self, shared: Any, kind: str
    ) -> None:
        text, store = await shared.token("admin", "b", lifetime=DAY), shared.workers[0].access.store
        id = text.split("_")[1]
        if kind == "expired":
            shared.clock.advance(DAY)
        elif kind == "revoked":
            await store.revoke(id, by=Requester("test", ""))
        elif kind == "rotated away":
            await store.rotate(id, keep=0, by=Requester("test", ""))
        shown = {"forged": f"{text[:-8]}AAAAAAAA", "of nobody": f"lst_{'0' * 12}_{'A' * 43}"}.get(kind, text)
        headers = {"Authorization": f"Bearer {shown}"}
        for asked in operations("b"):
            here = await everything_of(shared, asked, headers)
            nowhere = await everything_of(shared, asked._replace(tenant="nowhere"), headers)
            assert here == nowhere, asked
            assert "hidden" not in here, asked
        assert shared.workers[0].commands.seen == []

    @pytest.mark.parametrize("sort", ["id", "due"])
    async def test_a_cursor_of_another_tenant_leads_into_ones_own_schedules_only(self, shared: Any, sort: str) -> None:
        page = "/api/v1/tenants/{}/schedules?limit=2&sort=" + sort
        headers = {"Authorization": f"Bearer {await shared.token('read', 'b')}"}
        cursor = (await shared.workers[0].ask("GET", page.format("b"), 200, headers=headers))["next_cursor"]
        headers = {"Authorization": f"Bearer {await shared.token('read', 'a')}"}
        document = await shared.workers[0].ask("GET", f"{page.format('a')}&cursor={cursor}", 200, headers=headers)
        assert {row["tenant"] for row in document["schedules"]} <= {"a"}
        assert "hidden" not in str(document["schedules"])

    async def test_lists_gets_and_counts_of_a_tenant_are_its_own(self, shared: Any) -> None:
        headers = {"Authorization": f"Bearer {await shared.token('read', 'a')}"}
        schedules = "/api/v1/tenants/a/schedules"
        page = await shared.workers[0].ask("GET", schedules, 200, headers=headers)
        assert {row["id"] for row in page["schedules"]} == {f"own-{number}" for number in range(8)}
        assert page["total"] == 8
        await shared.workers[1].ask("GET", f"{schedules}/own-3", 200, headers=headers)
        await shared.workers[1].ask("GET", f"{schedules}/hidden-3", 404, headers=headers)
        for path in ("/api/v1/tenants/a/../b/schedules", "/api/v1/tenants/a%2F..%2Fb/schedules", "/api/v1/tenants//b"):
            await shared.workers[0].ask("GET", path, 404, headers=headers)

    @pytest.mark.parametrize("path", ["schedules", "schedules/a"])
    async def test_a_body_cannot_name_another_tenant(self, shared: Any, path: str) -> None:
        headers = {"Authorization": f"Bearer {await shared.token('write', 'a')}"}
        method = "POST" if path == "schedules" else "PUT"
        body = {**ONCE, "tenant": "b"}
        document = await shared.workers[0].ask(method, f"/api/v1/tenants/a/{path}", 400, body, headers=headers)
        assert document["parameter"] == "tenant"

    @pytest.mark.parametrize("topic", ["light-scheduler-commands", "light-scheduler-results"])
    async def test_a_message_cannot_be_a_command_or_an_answer_for_another_tenant(self, shared: Any, topic: str) -> None:
        body = {**ONCE, "target": {"topic": topic, "headers": {"content-type": "text/plain"}}}
        headers = {"Authorization": f"Bearer {await shared.token('admin', 'a')}"}
        worker, schedules = shared.workers[0], "/api/v1/tenants/a/schedules"
        assert "all tenants" in (await worker.ask("POST", schedules, 403, body, headers=headers))["detail"]
        keyed = {**headers, "Idempotency-Key": "1"}
        await worker.ask("POST", schedules, 403, body, headers=keyed)
        await worker.ask("PUT", f"{schedules}/x", 403, body, headers=headers)
        headers = {"Authorization": f"Bearer {await shared.token('write')}"}
        await worker.ask("PUT", f"{schedules}/x", 201, body, headers=headers)

    async def test_idempotency_keys_of_tenants_do_not_meet(self, shared: Any) -> None:
        worker = shared.workers[0]
        for tenant in ("a", "b"):
            token = await shared.token("write", tenant)
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "same"}
            body = {**ONCE, "id": f"{tenant}-1"}
            result = await worker.ask("POST", f"/api/v1/tenants/{tenant}/schedules", 201, body, headers=headers)
            assert (result["tenant"], result["id"]) == (tenant, f"{tenant}-1")
