"""Tokens of an identity provider on real workers: whom they let in to what, and what happens as its keys change."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import jwt
import pytest
from support.application import READY_TIMEOUT_S, Application, WorkerProcess
from support.identity_provider import Provider, new_key
from support.waiting import eventually

from light_scheduler.access.jwks import RETRY_S
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.worker_process import worker_environment
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]
AUDIENCE = "light-scheduler"
SHOP, OTHER, TOKENS = "/api/v1/tenants/shop/schedules", "/api/v1/tenants/other/schedules", "/api/v1/tokens"
NOTICED_S = 3 * RETRY_S
"""How soon workers know of new keys: a token makes them look, once in RETRY_S."""


class Realm(NamedTuple):
    """An identity provider whose key is `one`, and an application whose workers accept its tokens."""

    provider: Provider
    application: Application


@pytest.fixture
async def realm(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Realm]:
    with Provider(AUDIENCE) as provider:
        provider.keys["one"] = new_key()
        application = await Application.create(kafka.bootstrap_servers, tmp_path, **provider.settings)
        yield Realm(provider, application)
        application.close()


async def asked(
    worker: WorkerProcess, token: str | None, path: str = SHOP, method: str = "GET", body: Any = None
) -> tuple[int, Any]:
    """Return the status and the document that a worker answers with."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, worker.url + path, json=body) as response,
    ):
        return response.status, await response.json(content_type=None)


async def accepted(
    worker: WorkerProcess, make: Callable[[], str], status: int = 200, within: float = NOTICED_S
) -> None:
    """Wait until a worker answers a token, which is made anew each time, with a status."""

    async def is_accepted() -> bool:
        return (await asked(worker, make()))[0] == status

    await eventually(is_accepted, within=within, every=0.2, what=f"status {status}")


async def test_roles_and_tenants_are_those_of_the_claims_on_every_worker(realm: Realm) -> None:
    provider, application = realm
    here, elsewhere = await asyncio.gather(application.start_worker(), application.start_worker())

    def token(subject: str, roles: list[str], *tenants: str) -> str:
        hour = SystemClock().now() // 1_000 + 3_600  # however long all of it takes
        return provider.token(subject, roles, list(tenants), key_id="one", exp=hour)

    clerk, guest = token("ann", ["clerks", "unknown"], "shop"), token("bob", ["guests"], "shop")
    body = {"trigger": {"after": "1h"}, "target": {"topic": application.target}}
    for worker in (here, elsewhere, here):
        # Then both have joined, and each partition has its worker.
        await accepted(worker, lambda: guest, within=READY_TIMEOUT_S)
    for number in range(12):
        status, answer = await asked(here, clerk, f"{SHOP}/order-{number}", "PUT", body)
        assert status == 201, answer
    for worker in (here, elsewhere):

        async def answered(worker: WorkerProcess = worker) -> list[Any] | None:
            """Return the schedules; ask again where the other worker was too slow for an answer."""
            status, page = await asked(worker, guest)
            assert status in (200, 503), page
            return page["schedules"] if status == 200 else None

        schedules = await eventually(answered, every=0.2, what=f"a list from {worker.url}")
        assert len(schedules) == 12, "it asks the other worker for what that one has"
    assert (await asked(elsewhere, guest, f"{SHOP}/new", "PUT", body))[0] == 403
    assert (await asked(elsewhere, guest, OTHER))[0] == 404
    assert (await asked(elsewhere, clerk, f"{OTHER}/new", "PUT", body))[0] == 404
    assert (await asked(elsewhere, clerk, TOKENS))[0] == 403
    chief = token("cleo", ["guests", "chiefs"], "*")
    assert (await asked(elsewhere, chief, TOKENS))[0] == 200
    assert (await asked(elsewhere, chief, f"{OTHER}/new", "PUT", body))[0] == 201
    assert (await asked(here, token("dan", ["guests"])))[0] == 404, "a token without a tenant"

    async def names_who_asked() -> bool:
        _, page = await asked(elsewhere, guest, f"{SHOP}/order-1/history")
        return [event.get("by") for event in page.get("events", ())] == ["oidc:ann"]

    await eventually(names_who_asked, every=0.1, what="the history of order-1")
    environment = worker_environment(application.settings) | {"LIGHT_SCHEDULER_TOKEN": guest}

    async def list_of_command_line() -> subprocess.CompletedProcess[str] | None:
        ran = await asyncio.to_thread(
            subprocess.run,
            [*PROGRAM, "list", "--tenant", "shop", "--json", "--url", elsewhere.url],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
        )
        return None if "Try again later" in ran.stderr else ran

    listed = await eventually(list_of_command_line, what="a list on the command line")
    assert listed.returncode == 0, listed.stderr
    assert len(json.loads(listed.stdout)["schedules"]) == 12


async def test_tokens_that_are_not_for_the_scheduler_not_valid_or_not_genuine_are_refused(realm: Realm) -> None:
    provider, application = realm
    worker = await application.start_worker()
    stranger, who = new_key(), ("eve", ["chiefs"], ["*"])
    now_s = jwt.decode(good := provider.token(*who, key_id="one"), options={"verify_signature": False})["exp"] - 60
    claims = jwt.decode(good, options={"verify_signature": False})
    refused = {
        None: "token",
        provider.token(*who, key_id="one", exp=now_s - 60): "has expired",
        provider.token(*who, key_id="one", nbf=now_s + 600): "is not valid",
        provider.token(*who, key_id="one", aud="another-service"): "is not valid",
        provider.token(*who, key_id="one", iss="https://login.example.com"): "is not valid",
        provider.token("eve", ["strangers"], ["*"], key_id="one"): "has no role",
        provider.forged(*who, key=stranger, key_id="one"): "is not valid",
        provider.forged(*who, key=stranger, key_id="another"): "is signed with a key that",
        jwt.encode(claims, "", algorithm="none", headers={"kid": "one"}): "which does not fit the kind of its key",
        f"{good[:-8]}AAAAAAAA": "is not valid",
    }
    assert (await asked(worker, good))[0] == 200
    for token, reason in refused.items():
        status, problem = await asked(worker, token)
        assert status == 401, (reason, problem)
        assert reason in problem["detail"]
    assert (await asked(worker, good))[0] == 200, "those that were refused have locked nobody out"


@pytest.mark.soak
async def test_a_new_key_is_accepted_soon_a_withdrawn_one_no_longer_and_known_ones_outlive_an_outage(
    realm: Realm,
) -> None:
    provider, application = realm
    worker = await application.start_worker()

    def signed_by(key_id: str) -> Callable[[], str]:
        return lambda: provider.token("ann", ["clerks"], ["shop"], key_id=key_id)

    assert (await asked(worker, signed_by("one")()))[0] == 200
    provider.keys["two"] = new_key()
    await accepted(worker, signed_by("two"))
    assert (await asked(worker, signed_by("one")()))[0] == 200, "it is served still"
    withdrawn = provider.keys.pop("one")
    provider.keys["three"] = new_key()
    await accepted(worker, signed_by("three"))
    old = provider.forged("ann", ["clerks"], ["shop"], key=withdrawn, key_id="one")
    assert (await asked(worker, old))[0] == 401

    provider.pause()
    provider.keys["four"] = new_key()
    assert (await asked(worker, signed_by("three")()))[0] == 200, "a key that is known"
    assert (await asked(worker, signed_by("four")()))[0] == 401
    late = await application.start_worker()
    assert (await asked(late, signed_by("three")()))[0] == 503, "it has never known a key"
    provider.resume()
    await accepted(late, signed_by("three"))
    await accepted(worker, signed_by("four"))
    assert worker.is_running
    assert late.is_running
