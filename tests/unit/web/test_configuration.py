"""The settings of a worker, and what `doctor` finds there, over HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from light_scheduler.connection import Secret
from light_scheduler.doctor.check import Check
from light_scheduler.settings import Settings, load_settings
from light_scheduler.web import configuration

CONFIGURATION = "/api/v1/configuration"
DOCTOR = "/api/v1/doctor"


async def shown(cluster: Any, settings: Settings) -> dict[str, tuple[str | None, str]]:
    cluster.settings = settings
    (worker,) = await cluster.start([0])
    answer = await worker.json(CONFIGURATION)
    assert answer["url"] == worker.url
    return {each["name"]: (each["value"], each["origin"]) for each in answer["settings"]}


async def test_every_setting_is_shown_with_where_it_comes_from(cluster: Any) -> None:
    environment = {"LIGHT_SCHEDULER_TICK": "250ms", "LIGHT_SCHEDULER_INSECURE": "true"}
    found = await shown(cluster, load_settings({"web_port": 6067, "tenant_weights": "a:2"}, environment=environment))
    assert list(found) == sorted(setting.name for setting in fields(Settings))
    assert found["web_port"] == ("6067", "option")
    assert found["tenant_weights"] == ("a:2", "option")
    assert found["tick"] == ("250ms", "environment")
    assert found["insecure"] == ("true", "environment")
    assert found["app_id"] == ("light-scheduler", "default")
    assert found["ssl_ca"] == (None, "default")


async def test_secrets_are_hidden_and_only_whether_they_are_set_is_shown(cluster: Any) -> None:
    secret = "hunter2-of-kafka"
    found = await shown(cluster, Settings(sasl_password=Secret(secret)))
    assert found["sasl_password"][0] == "********"
    assert found["sasl_oauth_client_secret"][0] is None
    assert secret not in str(found)


async def test_what_the_doctor_finds_is_shown(cluster: Any, workers: Any) -> None:
    answer = await workers[0].json(DOCTOR)
    assert answer["ok"]
    assert answer["url"] == workers[0].url
    assert answer["checks"] == [
        {"name": "disk", "status": "ok", "detail": "9 GiB free", "fix": None},
        {"name": "clock", "status": "warn", "detail": "nothing synchronises it", "fix": "run an NTP client"},
    ]
    assert [lane["partition"] for lane in cluster.examined[0]["lanes"]] == [0, 2], "what the worker itself says"


def test_a_check_that_fails_says_that_not_all_is_well() -> None:
    failed = [Check("broker", "fail", "nobody answers", "start Kafka")]
    assert not configuration.checks_shown(failed, "http://worker", 1).ok


async def test_many_who_ask_at_once_have_the_checks_run_once(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(workers[0].json(DOCTOR) for _ in range(5)))
    await workers[0].json(DOCTOR)
    assert len(cluster.examined) == 1
    monkeypatch.setattr(configuration, "FRESH_S", 0.0)
    await workers[0].json(DOCTOR)
    assert len(cluster.examined) == 2


async def test_no_other_check_begins_when_the_worker_stops() -> None:
    begun: list[str] = []
    at_hand, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def examine(info: Mapping[str, Any]) -> Iterator[Check]:
        del info
        begun.append("broker")
        loop.call_soon_threadsafe(at_hand.set)
        go_on.wait(30)
        yield Check("broker", "ok", "it answers")
        begun.append("topics")
        yield Check("topics", "ok", "all there")

    worker: Any = SimpleNamespace(examine=examine)
    info: Any = dict
    handlers = configuration.ConfigurationHandlers(worker, info)
    asked = asyncio.create_task(handlers.doctor(make_mocked_request("GET", DOCTOR)))
    try:
        await at_hand.wait()
        await handlers.close()
    finally:
        go_on.set()
    await loop.shutdown_default_executor()  # which Python does when it exits, too
    assert begun == ["broker"]
    with pytest.raises(asyncio.CancelledError):
        await asked


@pytest.mark.parametrize("path", [CONFIGURATION, DOCTOR])
async def test_only_admins_for_all_tenants_see_it(cluster: Any, workers: Any, path: str) -> None:
    for role, tenants, status in (("write", (), 403), ("admin", ("a",), 403), ("admin", (), 200)):
        token = await cluster.token(role, *tenants, name=f"{role}-{len(tenants)}")
        await workers[0].ask("GET", path, status, headers={"Authorization": f"Bearer {token}"})
