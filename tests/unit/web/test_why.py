"""Why a schedule fired, fires or does not, over HTTP: what the workers of a cluster know together."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from support.web_cluster.schedules import forget

from light_scheduler.errors import BrokerError
from light_scheduler.lanes.context.status import TargetStatus
from light_scheduler.model import EventType, FixedRate, HistoryEvent, Requester
from light_scheduler.model.tenant_rules import TenantState
from light_scheduler.web import looking_back, why
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.wire import encode_history, history_key

NOW = 1_800_000_000_000
HOUR = 3_600_000
TOPIC = "light-scheduler-history"
PATH = "/api/v1/tenants/default/schedules/a/why"


def record(cluster: Any, event: str, at: int, *, id: str = "a", partition: int = 0, **fields: Any) -> None:
    told = {"version": 1, "due": NOW, "sequence": 1, "attempt": 1, "target_topic": "out", "reason": None, **fields}
    value = encode_history(HistoryEvent(EventType(event), "default", id, at=at, partition=partition, **told))
    cluster.topics.add(TOPIC, history_key("default", id), value, partition=partition % 2, at=at)


async def test_any_worker_tells_what_happened_and_what_comes_next(workers: Any, cluster: Any) -> None:
    cluster.put("a", due=NOW + HOUR, version=2, partition=3)
    record(cluster, "scheduled", NOW - 2 * HOUR)
    record(cluster, "updated", NOW - HOUR, version=2, due=NOW + HOUR, by="shop", address="192.0.2.7")
    record(cluster, "cancelled", NOW - HOUR, id="ab")
    expected = {
        "tenant": "default",
        "id": "a",
        "state": "pending",
        "next_due": NOW + HOUR,
        "summary": "It fires next at 2027-01-15T09:00:00.000Z (in 1h).",
        "events": [
            {
                "at": NOW - 2 * HOUR,
                "event": "scheduled",
                "version": 1,
                "due": NOW,
                "text": "Accepted as version 1, for topic out: due 2027-01-15T08:00:00.000Z.",
            },
            {
                "at": NOW - HOUR,
                "event": "updated",
                "version": 2,
                "due": NOW + HOUR,
                "text": "Updated by shop from 192.0.2.7 to version 2, for topic out: due 2027-01-15T08:00:00.000Z -> "
                "2027-01-15T09:00:00.000Z.",
            },
        ],
        "searched_from": NOW - 24 * HOUR,
        "complete": True,
    }
    for worker in workers:
        assert await worker.json(PATH) == expected


async def test_an_id_that_nobody_knows_is_an_answer_too(workers: Any) -> None:
    document = await workers[0].json(PATH, since=str(NOW - HOUR))
    assert (document["state"], document["next_due"], document["events"]) == ("unknown", None, [])
    assert document["summary"].endswith("the history since 2027-01-15T07:00:00.000Z has no event about it.")


async def test_what_is_in_the_way_is_known_by_the_worker_of_its_partition(workers: Any, cluster: Any) -> None:
    cluster.put("a", due=NOW - HOUR, partition=3)
    owner = next(worker for worker in workers if ("light-scheduler-commands", 3) in worker.lanes.all)
    owner.lanes.figures["clock_skew"] = 7_000
    owner.lanes.unavailable = [
        TargetStatus(topic=topic, partitions=[], unavailable_since=NOW - HOUR, waiting=1, reason=f"no leader: {topic}")
        for topic in ("other", "out")
    ]
    await workers[0].tenants.set_state("default", TenantState.PAUSED, by=Requester("ops", ""))
    for worker in workers:
        summary = (await worker.json(PATH))["summary"]
        assert "the tenant default is paused" in summary
        assert "out is unavailable since 2027-01-15T07:00:00.000Z (no leader: out)" in summary
        assert "the clock of its worker is 7s ahead of the broker's" in summary


async def test_a_partition_that_is_restoring_is_named_with_its_reason(workers: Any, cluster: Any) -> None:
    cluster.put("a", due=NOW + HOUR, partition=3)
    record(cluster, "scheduled", NOW - HOUR, partition=3)
    owner = next(worker for worker in workers if ("light-scheduler-commands", 3) in worker.lanes.all)
    owner.lanes.states["light-scheduler-commands", 3] = "restoring"
    owner.lanes.figures["reason"] = "half of it"
    for worker in workers:
        document = await worker.json(PATH)
        assert document["state"] == "unreachable"
        assert "light-scheduler-commands[3] (restoring: half of it)" in document["summary"]
        assert len(document["events"]) == 1

    headers = {"Authorization": f"Bearer {await cluster.token('read', 'default')}"}
    for worker in workers:
        summary = (await worker.ask("GET", PATH, 200, headers=headers))["summary"]
        assert "light-scheduler-commands[3] (restoring)" in summary
        assert "half of it" not in summary, "it could name topics of other tenants"


async def test_of_two_schedules_of_one_id_the_one_that_was_accepted_last_counts(workers: Any, cluster: Any) -> None:
    cluster.put("a", due=NOW + HOUR, partition=0, accepted_at=NOW - 2)
    cluster.put("a", due=NOW + 2 * HOUR, partition=1, accepted_at=NOW - 1)
    assert (await workers[0].json(PATH))["next_due"] == NOW + 2 * HOUR


async def test_a_long_history_is_read_in_rounds_and_says_how_far_it_was_read(
    workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_back, "MOST_RECORDS", 100)
    record(cluster, "scheduled", NOW - 5 * HOUR)
    for number in range(1_000):
        record(cluster, "fired", NOW - 2 * HOUR + number, id="other", partition=number % 2)
    document = await workers[0].json(PATH)
    assert (document["complete"], document["events"]) == (False, [])
    assert NOW - 2 * HOUR < document["searched_from"] < NOW - 2 * HOUR + 600
    assert 100 * why.MOST_ROUNDS <= cluster.topics.read < 1_000
    monkeypatch.setattr(why, "MOST_ROUNDS", 20)
    document = await workers[0].json(PATH)
    assert (document["complete"], document["searched_from"]) == (True, NOW - 24 * HOUR)
    assert [each["event"] for each in document["events"]] == ["scheduled"]


async def test_the_last_event_counts_whichever_partition_has_more_records(workers: Any, cluster: Any) -> None:
    for number in range(1_500):
        at = NOW - 24 * HOUR + number * 57_000
        if number in (1_380, 1_381):
            record(cluster, ("scheduled", "cancelled")[number - 1_380], at)
        else:
            record(cluster, "fired", at, id="other")
    for number in range(100):
        at = NOW - 600_000 + number * 5_000
        if number in (10, 20):
            record(cluster, ("scheduled", "fired")[number // 20], at, partition=1)
        else:
            record(cluster, "fired", at, id="other", partition=1)
    document = await workers[0].json(PATH)
    assert document["complete"]
    assert [each["event"] for each in document["events"]] == ["scheduled", "cancelled", "scheduled", "fired"]
    assert document["state"] == "delivered"


async def test_no_state_is_told_from_events_before_those_that_were_not_read(
    workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_back, "MOST_RECORDS", 10)
    record(cluster, "scheduled", NOW - 3 * HOUR)
    record(cluster, "cancelled", NOW - 2 * HOUR)
    record(cluster, "scheduled", NOW - HOUR, partition=1)
    for number in range(200):
        record(cluster, "fired", NOW - 600_000 + number, id="other", partition=1)
    document = await workers[0].json(PATH)
    assert (document["complete"], document["events"]) == (False, [])
    assert document["state"] == "unknown"
    assert document["searched_from"] > NOW - HOUR


def meanwhile(cluster: Any, monkeypatch: pytest.MonkeyPatch, *happen: Callable[[], None]) -> None:
    """Have something happen before each of the next times that a topic is opened."""
    waiting, opened = iter(happen), cluster.topics.Log.extents

    async def extents(log: Any, since: int) -> Any:
        next(waiting, lambda: None)()
        return await opened(log, since)

    monkeypatch.setattr(cluster.topics.Log, "extents", extents)


async def test_a_series_that_fires_while_the_history_is_read_is_not_overdue(
    workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put("a", due=NOW, partition=3, trigger=FixedRate(1_000, NOW))
    record(cluster, "scheduled", NOW - HOUR, partition=3)

    def fire() -> None:
        cluster.clock.set(NOW + 500)
        record(cluster, "fired", NOW + 3, partition=3)
        cluster.put("a", due=NOW + 1_000, partition=3, trigger=FixedRate(1_000, NOW), progress={"sequence": 2})

    meanwhile(cluster, monkeypatch, fire)
    document = await workers[0].json(PATH)
    assert [each["event"] for each in document["events"]] == ["scheduled", "fired"]
    assert (document["state"], document["next_due"]) == ("pending", NOW + 1_000)
    assert document["summary"] == "It fires next at 2027-01-15T08:00:01.000Z (in 500ms)."


async def test_a_schedule_that_comes_due_while_the_history_is_read_is_not_overdue(
    workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put("a", due=NOW + 1_000, partition=3)
    record(cluster, "scheduled", NOW - HOUR, partition=3)
    meanwhile(cluster, monkeypatch, lambda: cluster.clock.set(NOW + 3_000))
    assert "(in 1s)" in (await workers[0].json(PATH))["summary"]


async def test_a_series_that_ends_while_it_is_looked_up_again_says_how(
    workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put("a", due=NOW, partition=3, trigger=FixedRate(1_000, NOW))
    record(cluster, "scheduled", NOW - HOUR, partition=3)

    def fire_and_cancel() -> None:
        record(cluster, "fired", NOW + 3, partition=3)
        table = cluster.tables()["light-scheduler-commands", 3]
        forget(table, table.get("default", "a"))

    meanwhile(cluster, monkeypatch, fire_and_cancel, lambda: record(cluster, "cancelled", NOW + 4, partition=3))
    document = await workers[0].json(PATH)
    assert [each["event"] for each in document["events"]] == ["scheduled", "fired", "cancelled"]
    assert document["state"] == "cancelled"


async def test_a_search_that_gets_no_turn_later_on_leaves_the_history_incomplete(
    workers: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_back, "MOST_RECORDS", 100)
    for number in range(1_000):
        record(cluster, "fired", NOW - 2 * HOUR + number, id="other", partition=number % 2)
    record(cluster, "scheduled", NOW - HOUR)

    def refuse() -> None:
        raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "This worker has too many searches. Try again later.")

    meanwhile(cluster, monkeypatch, lambda: None, refuse)
    document = await workers[0].json(PATH)
    assert (document["complete"], [each["event"] for each in document["events"]]) == (False, ["scheduled"])
    assert NOW - 2 * HOUR < document["searched_from"] < NOW - HOUR
    meanwhile(cluster, monkeypatch, refuse)
    await workers[0].json(PATH, 429)


async def test_an_answer_has_so_many_events(workers: Any, cluster: Any) -> None:
    for number in range(1_100):
        record(cluster, "fired", NOW - HOUR + number, due=NOW - HOUR + number)
    document = await workers[0].json(PATH)
    assert (len(document["events"]), document["complete"]) == (1_000, False)
    assert document["events"][-1]["at"] == NOW - HOUR + 1_099


@pytest.mark.parametrize(("parameters", "named"), [({"since": "yesterday"}, "since"), ({"limit": "1"}, "limit")])
async def test_a_wrong_parameter_is_named(workers: Any, parameters: dict[str, str], named: str) -> None:
    assert (await workers[0].json(PATH, 400, **parameters))["parameter"] == named


async def test_a_broker_that_does_not_answer_is_a_503_about_reading(workers: Any, cluster: Any) -> None:
    cluster.topics.failure = BrokerError("the broker did not answer in time")
    problem = await workers[0].json(PATH, 503)
    assert problem["type"].endswith(":unavailable")


async def test_an_id_with_slashes_is_percent_encoded(workers: Any, cluster: Any) -> None:
    cluster.put("a/why", due=NOW + HOUR)
    assert (await workers[0].json("/api/v1/tenants/default/schedules/a%2Fwhy/why"))["state"] == "pending"


class TestCommandLine:
    async def test_it_prints_sentences_and_how_it_stands(self, workers: Any, cluster: Any, run: Any) -> None:
        record(cluster, "scheduled", NOW - HOUR)
        record(cluster, "cancelled", NOW - 1_000, reason="\x1b[2J", by="shop", address="192.0.2.7")
        code, out, err = await run("why", "a", "--url", workers[0].url)
        assert (code, err) == (0, "")
        assert out.splitlines() == [
            "2027-01-15T07:00:00.000Z Accepted as version 1, for topic out: due 2027-01-15T08:00:00.000Z.",
            "2027-01-15T07:59:59.000Z Cancelled by shop from 192.0.2.7: \\x1b[2J.",
            "It was cancelled at 2027-01-15T07:59:59.000Z by shop from 192.0.2.7 (\\x1b[2J), and does not fire. It was "
            "due at 2027-01-15T08:00:00.000Z.",
        ]

    async def test_it_prints_the_document_as_data(self, workers: Any, cluster: Any, run: Any) -> None:
        record(cluster, "scheduled", NOW - HOUR)
        code, out, _ = await run("why", "a", "--url", workers[0].url, "--since", str(NOW - 2 * HOUR), "--json")
        document = json.loads(out)
        assert (code, document["state"], document["searched_from"]) == (0, "gone", NOW - 2 * HOUR)

    @pytest.mark.parametrize("options", [(), ("--json",)])
    async def test_nothing_known_is_exit_code_1(self, workers: Any, run: Any, options: tuple[str, ...]) -> None:
        code, out, _ = await run("why", "a", "--url", workers[0].url, *options)
        assert code == 1
        assert "It is unknown" in out

    async def test_it_says_where_to_read_on(
        self, workers: Any, cluster: Any, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(looking_back, "MOST_RECORDS", 10)
        for number in range(500):
            record(cluster, "fired", NOW - HOUR + number, id="other", partition=number % 2)
        cluster.put("a", due=NOW + HOUR)
        code, _, err = await run("why", "a", "--url", workers[0].url)
        assert code == 0
        assert "`light-scheduler history` reads on" in err

    async def test_a_wrong_instant_is_wrong_use(self, workers: Any, run: Any) -> None:
        code, _, err = await run("why", "a", "--url", workers[0].url, "--since", "yesterday")
        assert (code, "--since" in err) == (2, True)
