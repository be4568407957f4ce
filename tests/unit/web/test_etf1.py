"""etf1's read API over a cluster: what its admin asks of a scheduler, and what its page asks of the admin."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from multidict import MultiDict
from support.web_cluster.cluster import with_topics
from support.web_cluster.schedules import NOW, TOPIC, make_entry, put

from light_scheduler.model import Target
from light_scheduler.tables.views import QueryError
from light_scheduler.web.cluster import bounded
from light_scheduler.web.etf1.operations import ETF1_OPERATIONS
from light_scheduler.web.etf1.search import MOST, Order, Row, order_of, search_of

SECOND = 1_000
DAY = 86_400 * SECOND
TODAY = NOW - NOW % DAY
SEARCH = "/api/scheduler/light-scheduler/schedules"
LIVE = "/api/live/scheduler/light-scheduler/schedules"
ONE = "/api/scheduler/light-scheduler/schedule/"


@pytest.fixture
def commands_topics() -> str:
    return f"{TOPIC}:etf1"


def fill(cluster: Any, count: int = 10) -> None:
    """Ten ids a to j: due ten seconds apart, in turn written ever earlier."""
    for number in range(count):
        written = b"%d" % (NOW // SECOND - number)
        cluster.put(
            f"Order-{chr(97 + number)}",
            partition=number % 4,
            due=NOW + number * 10 * SECOND,
            headers=[("scheduler-timestamp", written)],
        )


async def ids(worker: Any, path: str = SEARCH, **parameters: str) -> list[str]:
    answer = await worker.json(path, **{name.replace("_", "-"): text for name, text in parameters.items()})
    return [found["schedule"]["id"].removeprefix("Order-") for found in answer["schedules"]]


async def test_a_schedule_has_the_fields_of_etf1(cluster: Any, workers: Any) -> None:
    cluster.put(
        "a", partition=1, due=NOW + 5 * SECOND, target=Target("mails", b"mail\xff"), payload=b"\x00payload",
        headers=[("scheduler-timestamp", b"1"), ("x", b"y"), ("scheduler-timestamp", b"1799999990")],
    )  # fmt: skip
    expected = {
        "epoch": NOW // SECOND + 5,
        "id": "a",
        "target-key": "mail\ufffd",
        "target-topic": "mails",
        "timestamp": 1_799_999_990,
        "topic": TOPIC,
        "value": b64encode(b"\x00payload").decode(),
    }
    found = {"scheduler": "light-scheduler", "schedule": expected}
    for worker in workers:
        assert await worker.json(SEARCH) == {"found": 1, "schedules": [found]}
        assert await worker.json(ONE + "a") == [found]
    assert await workers[1].json("/schedules") == [expected]
    assert list(expected) == list((await workers[1].json("/schedules"))[0]), "in the order of its names, as there"


async def test_a_schedule_without_a_key_and_of_the_json_form(cluster: Any, workers: Any) -> None:
    cluster.put("a", payload=None, accepted_at=NOW - 5 * SECOND, headers=[("scheduler-timestamp", b"soon")])
    (found,) = (await workers[0].json(SEARCH))["schedules"]
    assert (found["schedule"]["target-key"], found["schedule"]["value"]) == ("", None)
    assert found["schedule"]["timestamp"] == NOW // SECOND - 5


async def test_each_worker_lists_its_own_schedules_of_the_day(cluster: Any, workers: Any) -> None:
    fill(cluster)
    cluster.put("at its end", due=TODAY + DAY - SECOND)
    cluster.put("tomorrow", due=TODAY + DAY)
    listed = [sorted(each["id"] for each in await worker.json("/schedules")) for worker in workers]
    assert listed == [
        [*(f"Order-{letter}" for letter in "acegi"), "at its end"],
        [f"Order-{letter}" for letter in "bdfhj"],
    ]


async def test_the_live_view_ends_with_the_day(cluster: Any, workers: Any) -> None:
    cluster.put("today", partition=1, due=TODAY + DAY - SECOND)
    cluster.put("tomorrow", partition=0, due=TODAY + DAY)
    for worker in workers:
        assert await ids(worker, sort_by="id asc") == ["today", "tomorrow"]
        assert await ids(worker, LIVE, epoch_to=str(TODAY // SECOND + 999_999)) == ["today"]
        assert [len(await worker.json(f"{path}/today")) for path in (ONE[:-1], LIVE[:-1])] == [1, 1]
        assert len(await worker.json(ONE + "tomorrow")) == 1
        await worker.json(LIVE[:-1] + "/tomorrow", 404)
        assert await worker.json("/api/stats") == [
            {"scheduler": "light-scheduler", "total_live": 1, "total_history": 0, "total": 2}
        ]


@pytest.mark.parametrize(
    ("sort_by", "expected"),
    [
        ("", "abcdefghij"),
        ("timestamp", "abcdefghij"),
        ("timestamp asc", "jihgfedcba"),
        ("asc", "jihgfedcba"),
        ("ID ASC", "abcdefghij"),
        ("id", "jihgfedcba"),
        ("epoch asc", "abcdefghij"),
        ("epoch desc", "jihgfedcba"),
        ("colour", "abcdefghij"),
    ],
)
async def test_schedules_come_in_the_order_asked_for(cluster: Any, workers: Any, sort_by: str, expected: str) -> None:
    fill(cluster)
    assert await ids(workers[0], sort_by=sort_by) == list(expected)
    answer = await workers[1].json(SEARCH, **{"sort-by": sort_by, "max": "3"})
    assert answer["found"] == 10
    assert [found["schedule"]["id"][-1] for found in answer["schedules"]] == list(expected[:3])


def test_what_is_equal_in_one_field_goes_by_another_upwards() -> None:
    rows = [Row("b", 1, 1, b""), Row("a", 1, 2, b""), Row("a", 1, 1, b""), Row("c", 1, 2, b"")]
    assert [(row.id, row.timestamp) for row in Order("id").first(rows, None)] == [
        ("c", 2),
        ("b", 1),
        ("a", 1),
        ("a", 2),
    ]
    assert [row.id for row in Order("timestamp").first(rows, 3)] == ["a", "c", "a"]
    assert [row.id for row in Order("epoch").first(rows, 2)] == ["a", "a"]
    assert order_of("epoch  asc extra") == Order("epoch", is_descending=False)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("order-c", "c"),
        ("ER-C", "c"),
        ("o*-c", "c"),
        ("order -order-c", "abdefghij"),
        ("+order-a r-a", "a"),
        ("c order-d", ""),
    ],
)
async def test_a_search_goes_by_words_of_the_id(cluster: Any, workers: Any, words: str, expected: str) -> None:
    fill(cluster)
    assert await ids(workers[0], schedule_id=words, sort_by="id asc") == list(expected)


async def test_a_search_goes_by_due_times_both_ends_included(cluster: Any, workers: Any) -> None:
    fill(cluster)
    first = NOW // SECOND
    assert await ids(workers[0], epoch_from=str(first + 20), epoch_to=str(first + 40), sort_by="id asc") == list("cde")
    assert await ids(workers[0], epoch_from=str(first + 80)) == list("ij")
    assert await ids(workers[0], epoch_from="0", epoch_to=str(first)) == ["a"]


def test_the_largest_answer() -> None:
    given = {text: search_of(MultiDict({"max": text})).most for text in ("0", "1", "999", "1000", "5000", "-1")}
    assert given == {"0": 300, "1": 1, "999": 999, "1000": MOST, "5000": MOST, "-1": MOST}
    assert search_of(MultiDict()).most == 300


@pytest.mark.parametrize(
    ("name", "text"),
    [("epoch-from", "soon"), ("epoch-to", "-1"), ("epoch-to", "99999999999999"), ("max", "many"), ("colour", "red")],
)
async def test_a_parameter_that_cannot_be_is_named(workers: Any, name: str, text: str) -> None:
    problem = await workers[0].json(SEARCH, 400, **{name: text})
    assert problem["parameter"] == name.replace("-", "_")


def test_a_range_has_its_beginning_first() -> None:
    with pytest.raises(QueryError, match="epoch_to: is before"):
        search_of(MultiDict({"epoch-from": "20", "epoch-to": "10"}))


async def test_the_same_id_in_several_partitions_is_shown_several_times(cluster: Any, workers: Any) -> None:
    cluster.put("a/b", partition=0, due=NOW + SECOND)
    cluster.put("a/b", partition=3, due=NOW + 2 * SECOND)
    found = await workers[0].json(ONE + "a%2Fb")
    assert sorted(each["schedule"]["epoch"] - NOW // SECOND for each in found) == [1, 2]


@pytest.mark.parametrize("id", ["jobs/pause", "jobs/history", "jobs/why"])
async def test_an_id_may_end_as_a_path_of_another_api(cluster: Any, workers: Any, id: str) -> None:
    cluster.put(id)
    for path in (ONE, LIVE[:-1] + "/"):
        (found,) = await workers[0].json(path + id)
        assert found["schedule"]["id"] == id


async def test_another_scheduler_and_another_id_have_nothing(cluster: Any, workers: Any) -> None:
    fill(cluster)
    assert await workers[0].json("/api/scheduler/other/schedules") == {"found": 0, "schedules": []}
    await workers[0].json("/api/scheduler/other/schedule/Order-a", 404)
    await workers[0].json(ONE + "Order-z", 404)


async def test_only_topics_of_the_dialect_and_the_default_tenant_are_shown(cluster: Any) -> None:
    cluster.settings = with_topics(f"{TOPIC}:etf1,other")
    (worker,) = await cluster.start([0])
    cluster.distribution[worker.url]["other"] = [0]
    worker.lanes.all["other", 0] = type(worker.lanes.all[TOPIC, 0])(worker.lanes.all[TOPIC, 0].store)
    worker.lanes.states["other", 0] = "running"
    put(worker.lanes.all["other", 0], make_entry("native"))
    cluster.put("ours")
    cluster.put("theirs", tenant="acme")
    assert await ids(worker) == ["ours"]


async def test_what_a_lane_lacks_is_named(cluster: Any, workers: Any) -> None:
    fill(cluster)
    workers[1].lanes.states[TOPIC, 3] = "restoring"
    problem = await workers[0].json(SEARCH, 503)
    assert [(each["topic"], each["partition"]) for each in problem["missing"]] == [(TOPIC, 3)]


@pytest.mark.parametrize("bound", ["REQUEST_BUDGET", "MOST_BYTES"])
async def test_a_search_that_is_too_large_is_refused_by_whichever_worker_is_asked(
    cluster: Any, workers: Any, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        cluster.put(f"{number:02}", partition=3, due=NOW + number * SECOND)
    monkeypatch.setattr(bounded, "SLICE_BUDGET", 10)
    monkeypatch.setattr(bounded, bound, {"REQUEST_BUDGET": 20, "MOST_BYTES": 3_000}[bound])
    for worker in workers:
        assert (await worker.json(SEARCH, 400))["parameter"] == "epoch_to"
        narrow = await worker.json(SEARCH, **{"epoch-to": str(NOW // SECOND + 5)})
        assert narrow["found"] == 6
    assert "epoch-from" in (await workers[1].json("/schedules", 400))["detail"]


async def test_a_search_that_fits_exactly_is_answered_and_one_schedule_more_is_refused(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "REQUEST_BUDGET", 30)
    monkeypatch.setattr(bounded, "SLICE_BUDGET", 20)
    for number in range(30):
        cluster.put(f"{number:02}", partition=number % 2 * 2)
    assert (await workers[1].json(SEARCH))["found"] == 30
    cluster.put("more", partition=2)
    assert (await workers[1].json(SEARCH, 400))["parameter"] == "epoch_to"


async def test_the_first_of_many_are_kept_while_all_are_read(cluster: Any, workers: Any) -> None:
    for number in range(1_100):
        cluster.put(f"{number:04}", partition=1, due=NOW + number * SECOND)
    answer = await workers[0].json(SEARCH, **{"sort-by": "epoch desc", "max": "2"})
    assert answer["found"] == 1_100
    assert [found["schedule"]["id"] for found in answer["schedules"]] == ["1099", "1098"]


async def test_the_admin_learns_of_the_scheduler(workers: Any) -> None:
    info = await workers[0].json("/info")
    assert info["kafka"] == {"bootstrap_servers": "127.0.0.1:9092", "topics": [TOPIC], "history_topic": ""}
    assert (info["address"], info["commands_topics"]) == (["127.0.0.1"], {TOPIC: "etf1"})
    assert info["hostname"]
    (scheduler,) = await workers[0].json("/api/schedulers")
    assert scheduler["name"] == "light-scheduler"
    assert [instance["ip"] for instance in scheduler["instances"]] == ["127.0.0.1"] * 2
    assert scheduler["instances"][0]["topics"] == [TOPIC]


async def test_the_openapi_document_has_the_operations_of_etf1(workers: Any) -> None:
    paths = (await workers[0].json("/api/v1/openapi.json"))["paths"]
    assert {operation.path for operation in ETF1_OPERATIONS} <= paths.keys()
    names = [each["name"] for each in paths["/api/scheduler/{name}/schedules"]["get"]["parameters"]]
    assert names == ["name", "schedule-id", "epoch-from", "epoch-to", "max", "sort-by"]
    listed = paths["/schedules"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert listed == {"type": "array", "items": {"$ref": "#/components/schemas/Planned"}}


async def test_without_a_topic_of_the_dialect_there_is_none_of_it(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    for path in ("/schedules", "/api/stats", SEARCH):
        await worker.json(path, 404)
    assert "kafka" not in await worker.json("/info")
    assert "/schedules" not in (await worker.json("/api/v1/openapi.json"))["paths"]
