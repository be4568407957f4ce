"""Bulk commands from the client, the command line and HTTP, on a real broker."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from support.application import Application
from support.reading import header, read_until

from light_scheduler.cli import cli
from light_scheduler.client import SchedulerClient
from light_scheduler.model import Outcome, Result

pytestmark = pytest.mark.integration

TEAMS = {f"order-{number}": f"t{number % 3}" for number in range(30)}


async def schedule_all(client: SchedulerClient, application: Application) -> None:
    await client.schedule_many(
        [
            {"id": id, "topic": application.target, "after": "1h", "labels": {"team": team}}
            for id, team in TEAMS.items()
        ],
        wait=True,
    )


def said(result: Result) -> tuple[str, Outcome, Any]:
    return str(result.id), result.outcome, result.count


async def test_the_client_controls_many_at_once_and_learns_how_many_there_were(served: Application) -> None:
    async with served.client() as client:
        await schedule_all(client, served)

        assert said(await client.pause_many(labels={"team": "t1"})) == ("*", Outcome.PAUSED, 10)
        assert said(await client.pause_many(everything=True)) == ("*", Outcome.PAUSED, 20)
        assert said(await client.resume_many(id_prefix="order-1")) == ("order-1*", Outcome.RESUMED, 11)
        cancelled = await client.cancel_many(id_prefix="order-2", labels="team=t0")
        assert said(cancelled) == ("order-2*", Outcome.CANCELLED, 3)
        assert said(await client.trigger_many(id_prefix="order-29")) == ("order-29*", Outcome.TRIGGERED, 1)
        await read_until(served.bootstrap_servers, [served.target], lambda records: len(records) == 1)
        assert said(await client.reschedule_many(everything=True, after=0)) == ("*", Outcome.RESCHEDULED, 26)
        assert said(await client.cancel_many(id_prefix="nothing")) == ("nothing*", Outcome.CANCELLED, 0)

    records = await read_until(served.bootstrap_servers, [served.target], lambda records: len(records) >= 12)
    fired = {header(record, "schedule-id") for record in records}
    assert fired == {"order-29", *(id for id in TEAMS if id.startswith("order-1"))}


async def test_the_command_line_cancels_many_at_once(served: Application) -> None:
    async with served.client() as client:
        await schedule_all(client, served)
    broker = ["--broker", f"kafka://{served.bootstrap_servers}", "--app-id", served.settings.app_id]

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, [*arguments, *broker], catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    assert await asyncio.to_thread(run, "cancel", "--prefix", "order-1", "--label", "team=t1") == (
        "cancelled default/order-1* 5 schedules\n"
    )
    answer = json.loads(await asyncio.to_thread(run, "pause", "--all", "--yes", "--json"))
    assert (answer["outcome"], answer["count"]) == ("paused", 25)


async def test_http_cancels_many_at_once_on_any_worker(served: Application) -> None:
    other = await served.start_worker()
    await served.shared()
    async with served.client() as client:
        await schedule_all(client, served)

    async with aiohttp.ClientSession(other.url) as session:

        async def ask(command: str, body: Any) -> tuple[str, int]:
            async with session.post(f"/api/v1/tenants/default/schedules:{command}", json=body) as response:
                assert response.status == 200, await response.text()
                answer = await response.json()
                return answer["outcome"], answer["count"]

        assert await ask("cancel", {"id": "order-1*", "labels": {"team": "t1"}}) == ("cancelled", 5)
        assert await ask("pause", {"id": "*"}) == ("paused", 25)
        assert await ask("reschedule", {"id": "*", "trigger": {"after": 0}}) == ("rescheduled", 25)
        assert await ask("resume", {"id": "order-2*"}) == ("resumed", 11)
    records = await read_until(served.bootstrap_servers, [served.target], lambda records: len(records) >= 11)
    assert {header(record, "schedule-id") for record in records} == {id for id in TEAMS if id.startswith("order-2")}
