"""The history view of etf1's admin: what was delivered, from the history topic."""

from __future__ import annotations

from typing import Any

import pytest
from support.web_cluster.schedules import NOW, TOPIC

from light_scheduler.errors import BrokerError
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.web import looking_back
from light_scheduler.web.etf1 import history
from light_scheduler.wire import encode_history, history_key

SECOND = 1_000
HISTORY = "light-scheduler-history"
SEARCH = "/api/history/scheduler/light-scheduler/schedules"
ONE = "/api/history/scheduler/light-scheduler/schedule/"


@pytest.fixture
def commands_topics() -> str:
    return f"{TOPIC}:etf1"


def record(
    cluster: Any, id: str, due: int, event: str = "fired", *, tenant: str = "default", partition: int = 0
) -> None:
    at = due + 2 * SECOND
    told = HistoryEvent(EventType(event), tenant, id, 1, due, at, 1, 1, "mails", None, partition)
    cluster.topics.add(HISTORY, history_key(tenant, id), encode_history(told), partition=partition % 2, at=at)


async def ids(worker: Any, **parameters: str) -> list[str]:
    answer = await worker.json(SEARCH, **{name.replace("_", "-"): text for name, text in parameters.items()})
    assert answer["found"] >= len(answer["schedules"])
    return [found["schedule"]["id"] for found in answer["schedules"]]


async def test_a_message_has_the_fields_of_a_schedule(cluster: Any, workers: Any) -> None:
    record(cluster, "a", NOW - 10 * SECOND)
    expected = {
        "scheduler": "light-scheduler",
        "schedule": {
            "epoch": NOW // SECOND - 10,
            "id": "a",
            "target-key": "",
            "target-topic": "mails",
            "timestamp": NOW // SECOND - 8,
            "topic": "",
            "value": None,
        },
    }
    for worker in workers:
        assert await worker.json(SEARCH) == {"found": 1, "schedules": [expected]}
        assert await worker.json(ONE + "a") == [expected]


async def test_only_what_was_delivered_for_the_default_tenant_is_listed(cluster: Any, workers: Any) -> None:
    record(cluster, "a", NOW - 9 * SECOND, "scheduled")
    record(cluster, "b", NOW - 8 * SECOND, "cancelled")
    record(cluster, "c", NOW - 7 * SECOND, tenant="acme")
    cluster.topics.add(HISTORY, history_key("default", "d"), b"of somebody else", at=NOW)
    cluster.topics.add(HISTORY, None, b"{}", at=NOW)
    record(cluster, "e", NOW - 6 * SECOND)
    assert await ids(workers[0]) == ["e"]
    for id in "abcd":
        await workers[0].json(ONE + id, 404)


async def test_messages_are_searched_as_schedules_are(cluster: Any, workers: Any) -> None:
    for number in range(10):
        record(cluster, f"order-{number}", NOW - (100 - number) * SECOND, partition=number)
    first = NOW // SECOND - 100
    assert await ids(workers[0], schedule_id="order-3") == ["order-3"]
    assert await ids(workers[0], epoch_from=str(first + 3), epoch_to=str(first + 5), sort_by="id asc") == [
        *("order-3", "order-4", "order-5"),
    ]
    assert await ids(workers[0], epoch_from="0", epoch_to=str(first)) == ["order-0"]
    answer = await workers[1].json(SEARCH, max="2")
    assert answer["found"] == 10
    assert [each["schedule"]["id"] for each in answer["schedules"]] == ["order-9", "order-8"]
    assert (await workers[0].json(SEARCH, 400, max="many"))["parameter"] == "max"


async def test_each_delivery_of_an_id_is_shown_the_newest_first(cluster: Any, workers: Any) -> None:
    for number in range(3):
        record(cluster, "a/b", NOW - (10 - number) * SECOND)
    found = await workers[0].json(ONE + "a%2Fb")
    assert [each["schedule"]["epoch"] - NOW // SECOND for each in found] == [-8, -9, -10]


async def test_a_search_stops_at_its_beginning_and_after_as_many_records_as_a_request_may_read(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1_000):
        record(cluster, f"{number}", NOW - (2_000 - number) * SECOND)
    await ids(workers[0], epoch_from=str(NOW // SECOND - 1_010))
    assert cluster.topics.read <= 20
    monkeypatch.setattr(looking_back, "MOST_RECORDS", 10)
    assert await ids(workers[0], max="1") == ["999"]
    assert (await workers[0].json(SEARCH))["found"] == looking_back.MOST_RECORDS


async def test_only_the_firings_that_are_shown_are_encoded_and_sorting_is_done_slice_by_slice(
    cluster: Any, workers: Any, rests: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[Any] = []
    encode = history._encode

    def noted(document: Any) -> bytes:
        encoded.append(document)
        return encode(document)

    monkeypatch.setattr(history, "_encode", noted)
    for number in range(200):
        record(cluster, f"{number:03}", NOW - (300 - number) * SECOND)
    answer = await workers[0].json(SEARCH, **{"sort-by": "id asc", "max": "3"})
    assert answer["found"] == 200
    assert [each["schedule"]["id"] for each in answer["schedules"]] == ["000", "001", "002"]
    assert len(encoded) == 3
    assert len(rests) >= 200


async def test_the_history_of_an_id_is_read_only_as_far_as_it_is_shown(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST", 5)
    for number in range(1_000):
        record(cluster, "a", NOW - (2_000 - number) * SECOND)
    found = await workers[0].json(ONE + "a")
    assert [each["schedule"]["epoch"] - NOW // SECOND for each in found] == [-1_001, -1_002, -1_003, -1_004, -1_005]
    assert cluster.topics.read <= looking_back.FIRST_PIECE


async def test_another_scheduler_has_nothing(cluster: Any, workers: Any) -> None:
    record(cluster, "a", NOW - SECOND)
    assert await workers[0].json(SEARCH.replace("r/light", "r/other")) == {"found": 0, "schedules": []}
    await workers[0].json(ONE.replace("r/light", "r/other") + "a", 404)


async def test_a_history_that_cannot_be_read_is_unavailable(cluster: Any, workers: Any) -> None:
    cluster.topics.failure = BrokerError("the broker is down")
    assert HISTORY in (await workers[0].json(SEARCH, 503))["detail"]
    await workers[0].json(ONE + "a", 503)
