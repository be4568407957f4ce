"""What is overridden of Faust's application."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from unittest.mock import AsyncMock, Mock

import pytest
from aiokafka import TopicPartition
from faust.tables import TableManager

from light_scheduler.agents import app as app_module
from light_scheduler.application import build
from light_scheduler.settings import Settings


async def test_a_start_does_not_wait_for_tables_that_there_are_none_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build(Settings(app_id="starts", data_dir=tmp_path))
    app.consumer = Mock(assignment=Mock(return_value=set()))
    tables, start = cast(TableManager, app.tables), AsyncMock()
    monkeypatch.setattr(tables, "sleep", Mock(side_effect=AssertionError("it waits")))
    monkeypatch.setattr(tables.recovery, "start", start)
    await tables.on_start()
    start.assert_awaited_once()
    assert tables._tables_registered.is_set()


async def test_a_start_warns_of_folders_that_no_process_uses_and_leaves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unused = tmp_path / "3" / "warns"
    unused.mkdir(parents=True)
    for name in ("wait_for_topics", "wait_for_access"):
        monkeypatch.setattr(app_module, name, AsyncMock())
    monkeypatch.setattr(app_module, "refuse_port_in_use", Mock())
    app = build(Settings(app_id="warns", data_dir=tmp_path))
    await app._await_surroundings()
    (warned,) = (record.message for record in caplog.records if record.levelname == "WARNING")
    assert warned.startswith(f"no process of this node uses the local state in {unused.parent}: delete the folder")
    assert unused.is_dir()


@pytest.mark.parametrize("session_timeout", [6_000, 300_000])
async def test_requests_wait_longer_than_a_session_lasts(tmp_path: Path, session_timeout: int) -> None:
    """Else Faust refuses to start."""
    conf = build(Settings(app_id="waits", data_dir=tmp_path, session_timeout=session_timeout)).conf
    assert conf.broker_session_timeout == session_timeout / 1_000 < conf.broker_request_timeout


async def test_a_worker_without_partitions_stays_in_the_group(tmp_path: Path) -> None:
    """aiokafka has a member that fetches nothing leave, and join no more; it takes the interval in ms."""
    conf = build(Settings(app_id="spare", data_dir=tmp_path)).conf
    assert int(conf.broker_max_poll_interval * 1_000.0) == 2**31 - 1


async def test_lanes_of_the_only_topic_share_rates_with_one_that_another_worker_reads_already(tmp_path: Path) -> None:
    settings = Settings(app_id="shares", data_dir=tmp_path)
    app = build(settings)
    topic = settings.inputs[0].name
    post = app.lanes._new_lane(TopicPartition(topic, 0)).context.rate_post
    assert post.topics == 1
    app.assignor.external_topic_distribution = {  # type: ignore[attr-defined]
        "http://a:1": {topic: [0]},
        "http://b:1": {topic: [1], "added": [0]},
    }
    assert post.topics == 2
    assert post.others() == {(topic, 1): 1 / 4, ("added", 0): 1 / 2}
