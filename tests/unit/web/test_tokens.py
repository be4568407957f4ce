"""Tokens over HTTP, and workers that ask each other."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from unittest.mock import AsyncMock

import pytest
from yarl import URL

from light_scheduler.access import Identity, Role, TokenError
from light_scheduler.access.jwks import KeysUnavailable
from light_scheduler.access.oidc import Oidc
from light_scheduler.access.peers import PEER_HEADER, signed
from light_scheduler.access.tokens import RotationConflict
from light_scheduler.connection.identity_provider import IdentityProvider
from light_scheduler.errors import BrokerError, ChangeUnconfirmed
from light_scheduler.model import Requester
from light_scheduler.web.cluster.peer_client import LOCAL_SCOPE, SCOPE_HEADER, authority_of
from light_scheduler.wire.requester import requester_of

NOW = 1_800_000_000_000
TOKENS = "/api/v1/tokens"
LIST = "/api/v1/tenants/default/schedules"


@pytest.fixture
async def admin(cluster: Any, workers: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {await cluster.token('admin', name='ops')}"}


async def test_a_token_is_made_used_rotated_and_revoked_and_its_text_is_shown_once(workers: Any, admin: Any) -> None:
    body = {"name": "shop", "role": "read", "tenants": ["shop"], "expires_in": "1d"}
    made = await workers[0].ask("POST", TOKENS, 201, body, headers=admin)
    id = made["about"]["id"]
    assert made["about"] == {
        "id": id,
        "name": "shop",
        "role": "read",
        "tenants": ["shop"],
        "state": "valid",
        "created_at": NOW,
        "created_by": "ops",
        "expires_at": NOW + 86_400_000,
        "last_used_at": None,
        "texts": 1,
    }
    path = "/api/v1/tenants/shop/schedules"
    old = {"Authorization": f"bearer  {made['token']}"}
    await workers[1].ask("GET", path, 200, headers=old)
    assert workers[1].access.uses == [id]

    again = await workers[1].ask("POST", f"{TOKENS}/{id}/rotate?keep=1h", 200, headers=admin)
    new = {"Authorization": f"Bearer {again['token']}"}
    assert again["about"]["texts"] == 2
    for headers in (old, new):
        await workers[0].ask("GET", path, 200, headers=headers)

    revoked = await workers[0].ask("DELETE", f"{TOKENS}/{id}", 200, headers=admin)
    assert revoked["state"] == "revoked"
    for headers in (old, new):
        assert "was revoked" in (await workers[1].ask("GET", path, 401, headers=headers))["detail"]

    listed = await workers[1].ask("GET", TOKENS, 200, headers=admin)
    assert {each["name"]: each["state"] for each in listed["tokens"]} == {"ops": "valid", "shop": "revoked"}
    assert made["token"] not in str(listed)


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"name": "", "role": "read", "tenants": None}, "name"),
        ({"name": "a", "role": "read", "tenants": []}, "tenants"),
        ({"name": "a", "role": "metrics", "tenants": ["a"]}, "tenants"),
        ({"name": "a", "role": "read", "tenants": None, "expires_in": "5"}, "expires_in"),
        ({"name": "a", "role": "read", "tenants": None, "expires_in": "9999999d"}, "expires_in"),
        ({"name": "a", "role": "owner", "tenants": None}, "role"),
        ({"name": "a", "role": "read"}, "tenants"),
        ({"name": "a", "role": "read", "tenants": "shop"}, "tenants"),
        ({"name": "a", "role": "read", "tenants": None, "more": 1}, "more"),
    ],
)
async def test_a_token_that_is_wrong_is_refused_by_name(workers: Any, admin: Any, body: Any, parameter: str) -> None:
    problem = await workers[0].ask("POST", TOKENS, 400, body, headers=admin)
    assert problem["parameter"] == parameter
    assert problem["type"].endswith("invalid-token")


async def test_what_is_no_token_is_not_found(workers: Any, admin: Any) -> None:
    for method, path in (("DELETE", f"{TOKENS}/x"), ("POST", f"{TOKENS}/x/rotate")):
        assert "no token 'x'" in (await workers[0].ask(method, path, 404, headers=admin))["detail"]
    await workers[0].ask("POST", f"{TOKENS}/x/rotate?keep=1", 400, headers=admin)


async def test_a_topic_that_cannot_be_written_is_said(cluster: Any, workers: Any, admin: Any) -> None:
    cluster.tenants.failure = BrokerError("gone")
    body = {"name": "a", "role": "read", "tenants": None}
    assert "gone" in (await workers[0].ask("POST", TOKENS, 503, body, headers=admin))["detail"]


async def test_a_token_that_may_exist_is_named_with_the_way_to_end_it(cluster: Any, workers: Any, admin: Any) -> None:
    cluster.tenants.failure = ChangeUnconfirmed("gone", is_stored=False)
    body = {"name": "a", "role": "read", "tenants": None}
    detail = (await workers[0].ask("POST", TOKENS, 503, body, headers=admin))["detail"]
    assert re.search(r"Token (\w+) \(a\) may exist.*light-scheduler tokens revoke \1", detail)


async def test_the_text_of_a_token_that_is_stored_is_shown_though_nobody_has_read_it_back(
    cluster: Any, workers: Any, admin: Any
) -> None:
    cluster.tenants.failure = ChangeUnconfirmed("gone", is_stored=True)
    made = await workers[0].ask("POST", TOKENS, 201, {"name": "a", "role": "read", "tenants": None}, headers=admin)
    assert made["token"]
    assert (made["about"]["name"], made["about"]["state"]) == ("a", "valid")


async def test_nobody_is_let_in_before_the_tokens_are_read(cluster: Any, workers: Any) -> None:
    cluster.tenants.is_loaded = False
    problem = await workers[0].ask("GET", LIST, 503)
    assert "has not read" in problem["detail"]
    await workers[0].ask("GET", "/live", 200)
    reasons = (await workers[0].ask("GET", "/ready", 503))["reasons"]
    assert reasons == ["the tokens have not been read yet"]


async def test_workers_answer_for_the_whole_cluster_when_tokens_are_needed(
    cluster: Any, workers: Any, admin: Any
) -> None:
    for partition in range(4):
        cluster.put(f"id-{partition}", partition=partition)
    page = await workers[0].ask("GET", f"{LIST}?sort=due", 200, headers=admin)
    assert page["total"] == 4
    await workers[0].ask("GET", f"{LIST}/id-3", 200, headers=admin)
    await workers[0].ask("DELETE", f"{LIST}/id-1", 200, headers=admin)
    assert (await workers[0].ask("GET", "/api/v1/delays", 200, headers=admin))["unanswered"] == []


async def test_the_header_of_workers_gives_no_rights_without_a_signature(
    cluster: Any, workers: Any, admin: Any
) -> None:
    local = {SCOPE_HEADER: LOCAL_SCOPE}
    authority = authority_of(URL(workers[0].url))
    secret = workers[0].access.book.peer_secret

    def signature(key: bytes = secret, path: str = LIST, at: int = NOW) -> dict[str, str]:
        return {**local, PEER_HEADER: signed(key, authority, path, at)}

    await workers[0].ask("GET", LIST, 401, headers=local)
    await workers[0].ask("GET", LIST, 401, headers={**local, **admin})
    await workers[0].ask("GET", LIST, 401, headers=signature(b"guessed"))
    await workers[0].ask("GET", LIST, 401, headers=signature(path="/info"))
    await workers[0].ask("GET", LIST, 401, headers=signature(at=NOW - 60_000))
    await workers[1].ask("GET", LIST, 401, headers=signature())
    await workers[0].ask("DELETE", f"{LIST}/a", 401, headers=signature(path=f"{LIST}/a"))
    async with workers[0].client.get(LIST, headers=signature()) as response:
        assert response.status == 200
        assert response.content_type == "application/vnd.light-scheduler.share+msgpack"
    await workers[0].ask("GET", TOKENS, 403, headers=signature(path=TOKENS))


@pytest.mark.parametrize("how", ["LIGHT_SCHEDULER_TOKEN", "LIGHT_SCHEDULER_TOKEN_FILE", "--token-file"])
async def test_the_command_line_sends_a_token(
    cluster: Any, workers: Any, run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, how: str
) -> None:
    text = await cluster.token("admin")
    cluster.put("a")
    code, out, err = await run("get", "a", "--url", workers[0].url)
    assert (code, out) == (1, "")
    assert err.endswith("the worker needs a token: give one with --token-file or LIGHT_SCHEDULER_TOKEN\n")
    file = tmp_path / "token"
    file.write_text(text + "\n")
    if how.startswith("--"):
        option = [how, str(file)]
    else:
        option = []
        monkeypatch.setenv(how, str(file) if how.endswith("FILE") else text)
    for command in (["get", "a"], ["list"], ["delays", "list"]):
        code, out, err = await run(*command, "--url", workers[0].url, *option)
        assert code == 0, err
        assert text not in out + err


async def test_the_command_line_says_why_a_token_is_refused_and_where_another_one_goes(
    cluster: Any, workers: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await cluster.token("admin")
    monkeypatch.setenv("LIGHT_SCHEDULER_TOKEN", text + "x")
    for command in (["get", "a"], ["list"], ["delays", "list"], ["dead-letters", "list"]):
        code, _, err = await run(*command, "--url", workers[0].url)
        assert code == 1
        assert "The token is not a token of this application. Give another one with --token-file or" in err


async def test_a_command_says_who_asked_for_it_and_from_where(cluster: Any, workers: Any) -> None:
    headers = {"Authorization": f"Bearer {await cluster.token('write', name='shop')}"}
    secret = workers[0].access.book.peer_secret
    once: dict[str, Any] = {"trigger": {"at": NOW + 1}, "target": {"topic": "out"}}
    requests: list[tuple[str, str, int, Any, dict[str, str]]] = [
        ("POST", LIST, 201, {**once, "id": "a"}, {}),
        ("POST", LIST, 201, {**once, "id": "c"}, {"Idempotency-Key": "1"}),
        ("POST", f"{LIST}?wait=false", 202, once, {}),
        ("PUT", f"{LIST}/b", 201, once, {}),
        ("POST", f"{LIST}/a/pause", 200, b"", {}),
        ("POST", f"{LIST}:cancel", 200, {"id": "*"}, {}),
        ("DELETE", f"{LIST}/b", 200, None, {}),
    ]
    for method, path, status, body, more in requests:
        await workers[0].ask(method, path, status, body, headers={**headers, **more})
    records = workers[0].commands.records
    assert len(records) == len(requests)
    for record in records:
        assert requester_of(record, secret) == Requester("shop", "127.0.0.1")


async def test_a_rotation_that_comes_second_is_a_conflict(
    workers: Any, admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await workers[0].ask("POST", TOKENS, 201, {"name": "shop", "role": "read", "tenants": None}, headers=admin)
    path = f"{TOKENS}/{made['about']['id']}/rotate"
    monkeypatch.setattr(workers[0].access.store, "rotate", AsyncMock(side_effect=RotationConflict("token x was taken")))
    problem = await workers[0].ask("POST", path, 409, headers=admin)
    assert problem["type"].endswith(":conflict")
    assert problem["detail"] == "Token x was taken."


class Refusing:
    """An identity provider whose keys cannot be read, or who knows one token."""

    def __init__(self, known: str = "") -> None:
        self._known = known

    async def identity(self, text: str) -> Identity:
        if not self._known:
            raise KeysUnavailable("gone")
        if text != self._known:
            raise TokenError("token", "is unknown")
        return Identity("oidc:alice", Role.ADMIN)


async def test_with_an_identity_provider_every_request_needs_a_token_and_both_kinds_are_accepted(
    cluster: Any, workers: Any
) -> None:
    for worker in workers:
        worker.access.oidc = Refusing("a.b.c")
    await workers[0].ask("GET", LIST, 401)
    await workers[0].ask("GET", LIST, 401, headers={"Authorization": "Bearer a.b.d"})
    await workers[0].access.store.make_peer_secret()
    alice = {"Authorization": "Bearer a.b.c"}
    await workers[0].ask("GET", LIST, 200, headers=alice)
    body = {"name": "first", "role": "read", "tenants": None}
    made = await workers[0].ask("POST", TOKENS, 201, body, headers=alice)
    assert made["about"]["created_by"] == "oidc:alice"
    await workers[0].ask("GET", LIST, 200, headers={"Authorization": f"Bearer {made['token']}"})
    workers[0].access.oidc = Refusing()
    assert "gone" in (await workers[0].ask("GET", LIST, 503, headers=alice))["detail"]
    await workers[0].ask("GET", LIST, 200, headers={"Authorization": f"Bearer {made['token']}"})


@pytest.mark.parametrize("header", ["Authorization: Bearer ", "Cookie: light-scheduler-token="])
async def test_bytes_that_are_no_text_are_no_token_of_an_identity_provider(
    cluster: Any, workers: Any, header: str
) -> None:
    provider = IdentityProvider("http://127.0.0.1:1", "light-scheduler", None, "roles", {}, "tenants")
    workers[0].access.oidc = Oidc(provider)
    place = URL(workers[0].url)
    reader, writer = await asyncio.open_connection(place.host, place.port)
    writer.write(f"GET {LIST} HTTP/1.1\r\nHost: {place.host}:{place.port}\r\n{header}".encode() + b"\xff\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
    writer.close()
    await writer.wait_closed()
