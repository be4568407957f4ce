"""Several processes behind one port: whichever answers, it answers for the node."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from light_scheduler.lanes.context.status import TargetStatus
from light_scheduler.web.cluster import node as module
from light_scheduler.web.metrics.node import together

TOPIC = "light-scheduler-commands"
LOCAL = {"Light-Scheduler-Scope": "local"}


@pytest.fixture
async def processes(cluster: Any) -> Any:
    """Return the two processes of a node: the first has the partitions 0 and 2, the second 1 and 3."""
    return await cluster.start([0, 2], [1, 3], as_node=True)


async def exposition(worker: Any, **headers: str) -> str:
    async with worker.client.get("/metrics", headers=headers) as response:
        assert response.status == 200
        found: str = await response.text()
        return found


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a metric: the values of labels, by their names -> value."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize("asked", [0, 1])
async def test_a_node_is_ready_when_all_of_its_processes_are(processes: Any, asked: int) -> None:
    assert await processes[asked].json("/ready") == {"status": "ready"}
    processes[0].lanes.states[TOPIC, 2] = "failed"
    processes[1].lanes.states[TOPIC, 1] = "restoring"
    assert (await processes[asked].json("/ready", status=503))["reasons"] == [
        f"process 0: {TOPIC}[2] is failed",
        f"process 1: {TOPIC}[1] is restoring",
    ]


async def test_a_node_is_not_ready_while_one_of_its_processes_is_away(processes: Any) -> None:
    await processes[1].stop()
    assert (await processes[0].json("/ready", status=503))["reasons"] == ["process 1: it does not answer"]
    assert await processes[0].json("/live") == {"status": "live"}


async def test_a_process_that_is_asked_by_another_answers_for_itself_alone(processes: Any) -> None:
    processes[0].lanes.states[TOPIC, 2] = "failed"
    async with processes[1].client.get("/ready", headers=LOCAL) as response:
        assert response.status == 200
    own = await exposition(processes[1], **LOCAL)
    assert {labels[1] for labels in samples(own, "light_scheduler_pending")} == {"1"}
    assert "process_up" not in own


@pytest.mark.parametrize("asked", [0, 1])
async def test_info_of_a_node_has_the_partitions_and_targets_of_all_processes(processes: Any, asked: int) -> None:
    def target(*partitions: int, since: int, waiting: int, reason: str) -> TargetStatus:
        return TargetStatus(
            topic="mails", partitions=list(partitions), unavailable_since=since, waiting=waiting, reason=reason
        )

    processes[0].lanes.unavailable = [target(0, 2, since=7, waiting=3, reason="it has no leader")]
    processes[1].lanes.unavailable = [target(1, 2, since=5, waiting=4, reason="it has no leader")]
    info = await processes[asked].json("/info")
    assert [lane["partition"] for lane in info["lanes"]] == [0, 2, 1, 3]
    assert info["url"] == processes[asked].url
    assert info["processes"] == [
        {"process": number, "url": process.url, "answers": True} for number, process in enumerate(processes)
    ]
    assert info["targets"] == [
        {
            "topic": "mails",
            "partitions": [0, 1, 2],
            "unavailable_since": 5,
            "waiting": 7,
            "reason": "it has no leader",
        }
    ]


async def test_info_says_which_process_does_not_answer(processes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.5)
    await processes[0].stop()
    info = await processes[1].json("/info")
    assert [(each["process"], each["answers"]) for each in info["processes"]] == [(0, False), (1, True)]
    assert [lane["partition"] for lane in info["lanes"]] == [1, 3]


@pytest.mark.parametrize("asked", [0, 1])
async def test_one_scrape_has_the_samples_of_all_processes(processes: Any, asked: int) -> None:
    text = await exposition(processes[asked])
    assert samples(text, "light_scheduler_process_up") == {("0",): 1, ("1",): 1}
    assert samples(text, "light_scheduler_process_restarts_total") == {("0",): 0, ("1",): 1}
    assert samples(text, "light_scheduler_pending") == {
        ("0", "0", TOPIC): 0,
        ("2", "0", TOPIC): 0,
        ("1", "1", TOPIC): 0,
        ("3", "1", TOPIC): 0,
    }
    assert len(samples(text, "process_cpu_seconds_total")) == 2
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)), "the format has each family once"


async def test_a_scrape_says_which_process_does_not_answer(processes: Any) -> None:
    await processes[1].stop()
    text = await exposition(processes[0])
    assert samples(text, "light_scheduler_process_up") == {("0",): 1, ("1",): 0}
    assert set(samples(text, "light_scheduler_pending")) == {("0", "0", TOPIC), ("2", "0", TOPIC)}


async def test_processes_prove_to_each_other_who_they_are_when_tokens_are_needed(cluster: Any, processes: Any) -> None:
    bearer = {"Authorization": f"Bearer {await cluster.token('read')}"}
    text = await exposition(processes[0], **bearer)
    assert samples(text, "light_scheduler_process_up") == {("0",): 1, ("1",): 1}
    info = await processes[1].ask("GET", "/info", 200, headers=bearer)
    assert [each["answers"] for each in info["processes"]] == [True, True]
    assert await processes[1].json("/ready") == {"status": "ready"}
    await processes[1].json("/info", status=401)


async def test_a_worker_alone_says_nothing_of_processes(workers: Any) -> None:
    assert (await workers[0].json("/info"))["processes"] == []
    assert "process=" not in await exposition(workers[0])


def test_expositions_with_different_families_are_put_together() -> None:
    first = b'# HELP a A.\n# TYPE a gauge\na{p="0"} 1.0\n# HELP b B.\n# TYPE b counter\nb 2.0\n'
    second = b"# HELP b B.\n# TYPE b counter\nb 3.0\n# HELP c C: # HELP\n# TYPE c gauge\n"
    assert together([first, second]) == (
        b'# HELP a A.\n# TYPE a gauge\na{p="0"} 1.0\n# HELP b B.\n# TYPE b counter\nb 2.0\nb 3.0\n'
        b"# HELP c C: # HELP\n# TYPE c gauge\n"
    )
