"""For how long an answer about a topic, or the lack of a right to write to it, is believed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import TopicAuthorizationFailedError, UnknownError

from light_scheduler.kafka import targets as module
from light_scheduler.kafka.targets import Targets, refusal_of


class Cluster:
    """Answers what an admin client asks; topics are those of the dict, with their configuration."""

    def __init__(self, topics: dict[str, dict[str, str]]) -> None:
        self.topics = topics
        self.asked = 0
        self.most_asked = 0

    async def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        self.asked += 1
        self.most_asked = max(self.most_asked, len(names))
        return [
            {"topic": name, "error_code": 0, "partitions": [{}, {}]}
            if name in self.topics
            else {"topic": name, "error_code": 3, "partitions": []}
            for name in names
        ]

    async def describe_configs(self, resources: list[Any]) -> list[Any]:
        rows = [
            (0, "", 2, resource.name, [("max.message.bytes", "1000"), *self.topics[resource.name].items()])
            for resource in resources
        ]
        return [SimpleNamespace(resources=rows)]


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed: the last of these."""
    passed = [1_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: passed[-1]))
    return passed


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        {
            "plain": {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"},
            "latest": {"cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime"},
        }
    )


@pytest.fixture
def targets(cluster: Cluster) -> Targets:
    targets = Targets("nowhere:1")
    targets._admin = cluster
    return targets


async def test_of_topics_only_those_that_are_forgotten_are_asked_about_again(
    targets: Targets, cluster: Cluster
) -> None:
    await targets.resolve({"plain", "latest"})
    targets.forget({"plain", "unheard-of"})
    await targets.resolve({"latest"})
    assert cluster.asked == 1
    await targets.resolve({"plain", "latest"})
    assert (cluster.asked, targets["plain"].partitions) == (2, 2)


async def test_a_topic_is_known_by_partitions_size_and_what_it_does_with_records(targets: Targets) -> None:
    await targets.resolve({"plain", "latest", "missing"})
    assert targets["plain"][:3] == (2, 1_000, None)
    assert (targets["plain"].is_compacted, targets["latest"].is_compacted) == (False, True)
    assert (targets["plain"].stamps_appends, targets["latest"].stamps_appends) == (False, True)
    assert targets["missing"].refusal == "topic missing does not exist"


async def test_a_topic_that_is_missing_is_asked_for_soon_and_one_that_is_there_seldom(
    targets: Targets, cluster: Cluster, passed: list[float]
) -> None:
    await targets.resolve({"plain", "missing"})
    passed.append(1_001.9)
    await targets.resolve({"plain", "missing"})
    assert cluster.asked == 1
    passed.append(1_002.0)
    cluster.topics["missing"] = {}
    await targets.resolve({"plain", "missing"})
    assert (cluster.asked, targets["missing"].refusal) == (2, None)
    passed.append(1_061.9)
    await targets.resolve({"plain", "missing"})
    assert cluster.asked == 3, "plain was asked for a minute ago"


async def test_many_topics_are_asked_for_in_parts_that_a_broker_answers_soon() -> None:
    names = {f"topic-{number}" for number in range(1_201)}
    cluster = Cluster({name: {} for name in names})
    targets = Targets("nowhere:1")
    targets._admin = cluster
    await targets.resolve(names)
    assert {targets[name].refusal for name in names} == {None}
    assert (cluster.asked, cluster.most_asked) == (3, 500)


@pytest.mark.parametrize("asked_at", [(), (1_000.1,), (1_003.0, 1_006.0), (1_008.9,), (1_006.9, 1_008.95)])
async def test_a_denial_holds_for_its_time_and_not_longer_whenever_it_was_looked_up(
    targets: Targets, passed: list[float], asked_at: tuple[float, ...]
) -> None:
    await targets.resolve({"plain"})
    targets.deny("plain", "may not", 9.0)
    for at in asked_at:
        passed.append(at)
        await targets.resolve({"plain"})
        assert targets["plain"].refusal == "may not"
        targets.forget_all()
        await targets.resolve({"plain"})
        assert targets["plain"].refusal == "may not", "a lane that starts again knows it too"
    passed.append(1_009.0)
    await targets.resolve({"plain"})
    assert targets["plain"].refusal is None


async def test_a_topic_without_the_right_to_write_is_told_from_one_that_is_not_there(targets: Targets) -> None:
    targets.deny("plain", "may not", 9.0)
    await targets.resolve({"plain", "latest", "missing"})
    assert [targets[topic].is_denied for topic in ("plain", "latest", "missing")] == [True, False, False]


def test_a_refusal_says_what_is_missing() -> None:
    assert refusal_of("t", TopicAuthorizationFailedError("t")) == "the scheduler is not authorised to write to topic t"
    assert refusal_of("t", UnknownError()).startswith("topic t refused it: UnknownError")
