"""Where the command line sends a command for a schedule that it knows by its id alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.web_cluster.schedules import TOPIC, make_entry, put

from light_scheduler.cli.location import Location, place_of
from light_scheduler.connection import Secret
from light_scheduler.errors import ClientError
from light_scheduler.settings import Settings
from light_scheduler.web.schedule_client import ScheduleReader

replace = msgspec.structs.replace


async def test_it_goes_to_the_partition_that_has_the_schedule(
    cluster: Any, workers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for partition in range(4):
        cluster.put(f"a/{partition}", partition=partition, tenant="acme")
        place = await place_of(Settings(), workers[0].url, "acme", f"a/{partition}")
        assert place == Location(TOPIC, partition, "native")
    assert await place_of(Settings(), workers[1].url, "default", "a/1") is None
    assert capsys.readouterr().err == ""


async def test_it_goes_where_a_schedule_has_been_moved_to(cluster: Any, workers: Any) -> None:
    put(workers[1].lanes.all[TOPIC, 3], make_entry("a", partition=1))
    assert await place_of(Settings(), workers[0].url, "default", "a") == Location(TOPIC, 3, "native")
    gone = await workers[0].ask("DELETE", "/api/v1/tenants/default/schedules/a", 200)
    assert (gone["outcome"], gone["partition"]) == ("cancelled", 3)


async def test_a_worker_that_cannot_know_is_an_error(cluster: Any, workers: Any) -> None:
    await workers[1].stop()
    with pytest.raises(ClientError, match="No worker answered for"):
        await place_of(Settings(), workers[0].url, "default", "a")


async def test_without_a_worker_it_goes_by_the_id_and_that_is_said(
    workers: Any, unused_tcp_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await place_of(Settings(), f"http://127.0.0.1:{unused_tcp_port}", "default", "a") is None
    said = capsys.readouterr().err
    assert "cannot reach a worker" in said
    assert "sent to the partition of key 'a'" in said


async def test_a_worker_of_another_application_is_not_believed(
    cluster: Any, workers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.put("a", partition=1)
    assert await place_of(Settings(app_id="other"), workers[0].url, "default", "a") is None
    assert "is of application light-scheduler, not other" in capsys.readouterr().err


async def test_a_token_for_the_tenant_is_enough(cluster: Any, workers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.put("a", partition=1, tenant="acme")
    settings = Settings(token=Secret(await cluster.token("write", "acme")))
    assert await place_of(settings, workers[0].url, "acme", "a") == Location(TOPIC, 1, "native")
    assert capsys.readouterr().err == ""
    assert await place_of(settings, workers[0].url, "default", "a") is None
    assert "the token may not see the schedules of tenant 'default'" in capsys.readouterr().err


async def test_what_a_worker_wants_of_a_token_is_said(
    cluster: Any, workers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = await cluster.token("metrics")
    assert await place_of(Settings(), workers[0].url, "default", "a") is None
    assert "the worker needs a token: give one with --token-file" in capsys.readouterr().err
    assert await place_of(Settings(token=Secret(text)), workers[0].url, "default", "a") is None
    said = capsys.readouterr().err
    assert "This needs a token with the role read" in said
    assert "sent to the partition of key 'a'" in said


async def test_a_worker_of_an_earlier_version_is_asked_for_its_application(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer about who asks does not name the application."""
    cluster.put("a", partition=3)
    identity = ScheduleReader.identity

    async def of_earlier_version(self: ScheduleReader) -> Any:
        return replace(await identity(self), app_id=None, commands_topics=None)

    monkeypatch.setattr(ScheduleReader, "identity", of_earlier_version)
    assert await place_of(Settings(), workers[0].url, "default", "a") == Location(TOPIC, 3, "native")
