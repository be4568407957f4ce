"""Delay rules over HTTP and on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from light_scheduler.delays import DelayLaneStatus
from light_scheduler.model.lateness import Lateness

RULES = "/api/v1/delays"
NOW = 1_800_000_000_000


def lane(partition: int, **figures: Any) -> DelayLaneStatus:
    defaults: dict[str, Any] = {
        "rule": "fixed",
        "source": "a",
        "state": "running",
        "reason": None,
        "waiting": False,
        "position": 8,
        "lag": 3,
        "next_due": NOW,
        "forwarded": 8,
        "dead_letters": 1,
        "expired": 0,
        "transactions": 2,
        "restarts": 0,
        "lateness": Lateness(),
    }
    return DelayLaneStatus(partition=partition, **(defaults | figures))


async def put(worker: Any, name: str, status: int, **body: Any) -> Any:
    async with worker.client.put(f"{RULES}/{name}", json=body) as response:
        assert response.status == status, await response.text()
        return await response.json(content_type=None)


async def delete(worker: Any, name: str) -> int:
    async with worker.client.delete(f"{RULES}/{name}") as response:
        status: int = response.status
        return status


async def test_a_rule_is_put_shown_replaced_and_deleted(workers: Any) -> None:
    worker = workers[0]
    created = await put(worker, "later", 201, source="b", delay="1m", target="c")
    assert created == {
        "name": "later", "source": "b", "delay": 60_000, "target": "c",
        "origin": "topic", "refused": None, "warnings": [],
    }  # fmt: skip
    assert await worker.json(f"{RULES}/later") == created
    assert (await put(worker, "later", 200, source="b", delay=250, target="c"))["delay"] == 250
    assert [rule["name"] for rule in (await worker.json(RULES))["delays"]] == ["fixed", "later"]
    assert await delete(worker, "later") == 204
    assert await delete(worker, "later") == 404
    await worker.json(f"{RULES}/later", status=404)


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"source": "b", "delay": "5s", "target": "a"}, "target"),
        ({"source": "b", "delay": "soon", "target": "c"}, "delay"),
        ({"source": "b", "delay": -1, "target": "c"}, "delay"),
        ({"source": "light-scheduler-history", "delay": "5s", "target": "c"}, "source"),
        ({"source": "b", "delay": "5s"}, "target"),
        ({"source": "b", "delay": 1.5, "target": "c"}, "delay"),
        ({"source": "b", "delay": "5s", "target": "c", "fast": True}, "fast"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused_by_its_part(workers: Any, body: Any, parameter: str) -> None:
    problem = await put(workers[0], "later", 400, **body)
    assert problem["parameter"] == parameter
    assert problem["type"].endswith("invalid-delay-rule")
    assert [rule["name"] for rule in (await workers[0].json(RULES))["delays"]] == ["fixed"]


async def test_a_rule_of_the_configuration_cannot_be_changed_live(workers: Any) -> None:
    problem = await put(workers[0], "fixed", 409, source="a", delay="1s", target="b")
    assert "is in the workers' configuration" in problem["detail"]
    assert await delete(workers[0], "fixed") == 409


async def test_the_list_has_the_lanes_of_all_workers_and_names_those_that_did_not_answer(workers: Any) -> None:
    workers[0].delays.figures = [lane(1)]
    workers[1].delays.figures = [lane(0)]
    listed = await workers[0].json(RULES)
    assert [each["partition"] for each in listed["lanes"]] == [0, 1]
    assert listed["unanswered"] == []
    await workers[1].stop()
    listed = await workers[0].json(RULES)
    assert [each["partition"] for each in listed["lanes"]] == [1]
    assert listed["unanswered"] == [workers[1].url]


async def test_info_and_metrics_have_the_lanes_own_figures(workers: Any) -> None:
    lateness = Lateness()
    lateness.observe(3, 8)
    workers[0].delays.figures = [lane(2, waiting=True, lateness=lateness)]
    assert [each["forwarded"] for each in (await workers[0].json("/info"))["delays"]] == [8]
    async with workers[0].client.get("/metrics") as response:
        text = await response.text()
    found = {
        (sample.name.removeprefix("light_scheduler_delay_"), sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("rule") == "fixed" and sample.labels["partition"] == "2"
    }
    assert found["forwarded_total", None] == 8
    assert found["dead_letters_total", None] == 1
    assert found["lag", None] == 3
    assert found["waiting", None] == 1
    assert found["next_due_timestamp_seconds", None] == NOW / 1_000
    assert found["lateness_seconds_bucket", "0.002"] == 0
    assert found["lateness_seconds_bucket", "0.005"] == 8


class TestCommandLine:
    async def test_rules_are_added_listed_and_removed(self, workers: Any, run: Any) -> None:
        url = workers[0].url
        workers[0].delays.figures = [lane(0), lane(1, reason="topic b does not exist")]
        code, out, _ = await run(
            "delays", "add", "later", "--source", "b", "--delay", "1m", "--target", "c", "--url", url
        )
        assert (code, out) == (0, "later: b -1m-> c\n")
        code, out, _ = await run("delays", "list", "--url", url)
        assert code == 0
        first, figures, *rest = out.splitlines()
        assert first == "fixed: a -5s-> b"
        assert figures.startswith("  running: 2 partitions, 16 forwarded, lag 6, next due ")
        assert rest == ["  topic b does not exist", "later: b -1m-> c", "  no partitions yet"]
        assert all(len(line) < 80 for line in out.splitlines())
        code, out, _ = await run("delays", "list", "--url", url, "--json")
        assert [rule["name"] for rule in json.loads(out)["delays"]] == ["fixed", "later"]
        code, out, _ = await run("delays", "remove", "later", "--url", url, "--json")
        assert (code, json.loads(out)) == (0, {"removed": "later"})

    async def test_what_is_refused_fails_with_the_reason(self, workers: Any, run: Any) -> None:
        url = workers[0].url
        code, _, error = await run(
            "delays", "add", "x", "--source", "b", "--delay", "1m", "--target", "a", "--url", url
        )
        assert code == 1
        assert "creates a loop" in error
        code, _, error = await run("delays", "remove", "nothing", "--url", url)
        assert code == 1
        assert "There is no delay rule 'nothing'" in error

    async def test_no_worker_is_said(self, run: Any) -> None:
        code, _, error = await run("delays", "list", "--url", "http://127.0.0.1:9")
        assert code == 1
        assert "cannot reach a worker" in error
