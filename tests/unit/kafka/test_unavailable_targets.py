"""How a worker finds out that a target takes nothing, whom it holds to be concerned, and when that is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from support.waiting import eventually

from light_scheduler.errors import BrokerError, BrokerUnreachable, LaneError
from light_scheduler.kafka import target_outages as outages_module
from light_scheduler.kafka import targets as module
from light_scheduler.kafka.half_open import MANY_REFUSED
from light_scheduler.kafka.target_outages import WHOLE_TOPIC
from light_scheduler.kafka.targets import CONFIGURED_S, DOUBT_S, FRESH_S, GONE_S, Targets
from light_scheduler.model.place import Place

OWN = "app-history"
MISSING = 3
WAIT_S = 60.0


class Cluster:
    """Answers what an admin client asks; `leaders` has those of each topic's partitions, -1: none."""

    def __init__(self, **leaders: list[int]) -> None:
        self.leaders = leaders
        self.is_down = False
        self.asked: list[list[str]] = []
        self.configurations_asked: list[list[str]] = []
        self.in_sync_wanted, self.replicas = 1, [1, 2]

    async def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        self.asked.append(names)
        if self.is_down:
            raise KafkaConnectionError
        return [
            {"topic": name, "error_code": 0, "partitions": self._partitions(name)}
            if name in self.leaders
            else {"topic": name, "error_code": MISSING, "partitions": []}
            for name in names
        ]

    def _partitions(self, topic: str) -> list[dict[str, Any]]:
        return [
            {"partition": number, "leader": leader, "error_code": 0, "replicas": self.replicas, "isr": [1, 2]}
            for number, leader in enumerate(self.leaders[topic])
        ]

    async def describe_configs(self, resources: list[Any]) -> list[Any]:
        self.configurations_asked.append([resource.name for resource in resources])
        wanted = [("min.insync.replicas", str(self.in_sync_wanted))]
        return [SimpleNamespace(resources=[(0, "", 2, resource.name, wanted) for resource in resources])]

    async def close(self) -> None:
        pass


class Probes:
    """Probes of places, answered unless they are in `silent`."""

    def __init__(self) -> None:
        self.silent: set[Place] = set()
        self.probed: list[Place] = []
        self.then: Callable[[], None] = lambda: None

    async def __call__(self, place: Place) -> None:
        self.probed.append(place)
        self.then()
        if place in self.silent:
            raise LaneError("no marker")


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed: the last of these."""
    passed = [1_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: passed[-1]))
    monkeypatch.setattr(module, "WATCH_S", 0.001)
    monkeypatch.setattr(module, "TIMEOUT_S", 0.1)
    return passed


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(**{"t": [1, 2, 1, 2], "other": [1], OWN: [1]})


@pytest.fixture
def probes() -> Probes:
    return Probes()


@pytest.fixture
async def targets(cluster: Cluster, probes: Probes, passed: list[float]) -> AsyncIterator[Targets]:
    targets = Targets("nowhere:1", [OWN], probe=probes)
    targets._admin = cluster
    yield targets
    await targets.close()


def reasons(targets: Targets) -> dict[Place, str]:
    return {place: outage.reason for place, outage in targets.outages}


# -- what the metadata know -------------------------------------------------------------------------------------------


async def test_a_partition_without_a_leader_is_away_until_it_has_one(targets: Targets, cluster: Cluster) -> None:
    cluster.leaders["t"] = [1, -1, 1, 2]
    await targets.resolve({"t", "other"})
    assert reasons(targets) == {("t", 1): "it has no leader"}
    assert (targets["t"].partitions, targets["t"].refusal) == (4, None), "the others are written to"
    cluster.leaders["t"] = [1, 2, 1, 2]
    await eventually(lambda: not targets.outages)


async def test_only_topics_with_something_away_are_watched_and_nothing_when_all_is_well(
    targets: Targets, cluster: Cluster
) -> None:
    cluster.leaders["t"] = [-1]
    await targets.resolve({"t", "other"})
    await eventually(lambda: len(cluster.asked) > 3)
    assert all(names == ["t"] for names in cluster.asked[1:])
    cluster.leaders["t"] = [1]
    await eventually(lambda: not targets.outages)
    assert targets._watch is not None
    async with asyncio.timeout(WAIT_S):
        await targets._watch


SESSION_S = 9.0
"""How long Kafka takes by default to notice that a broker is dead."""


async def test_a_topic_that_is_doubted_is_watched_until_kafka_would_notice_a_dead_broker(
    targets: Targets, cluster: Cluster, passed: list[float]
) -> None:
    await targets.resolve({"t", "other"})
    targets.doubt({"t"})
    await eventually(lambda: len(cluster.asked) > 3)
    assert all(names == ["t"] for names in cluster.asked[1:])
    passed.append(passed[-1] + SESSION_S)
    cluster.leaders["t"] = [1, -1, 1, 2]
    await eventually(lambda: reasons(targets) == {("t", 1): "it has no leader"})
    cluster.leaders["t"] = [1, 2, 1, 2]
    passed.append(passed[-1] + DOUBT_S)
    assert targets._watch is not None
    async with asyncio.timeout(WAIT_S):
        await targets._watch


async def looked_again(cluster: Cluster) -> None:
    """Wait until topics have been looked at by a request that begins from now on."""
    asked = len(cluster.asked)
    await eventually(lambda: len(cluster.asked) > asked + 1)


@pytest.mark.parametrize("topic", ["t", OWN])
async def test_the_configuration_of_a_topic_that_is_only_doubted_is_read_seldom(
    targets: Targets, cluster: Cluster, passed: list[float], topic: str
) -> None:
    cluster.leaders[OWN] = [1, 2, 1, 2]
    await targets.resolve({topic})
    targets.doubt({topic})
    await looked_again(cluster)
    read = len(cluster.configurations_asked)
    for _ in range(3):
        await looked_again(cluster)
    assert len(cluster.configurations_asked) == read
    cluster.leaders[topic] = [1, -1, 1, 2]
    await eventually(lambda: targets[topic].unavailable == {1})
    await eventually(lambda: len(cluster.configurations_asked) > read + 3)
    cluster.leaders[topic] = [1, 2, 1, 2]
    await eventually(lambda: not targets[topic].unavailable)
    passed.append(passed[-1] + CONFIGURED_S)
    read = len(cluster.configurations_asked)
    await eventually(lambda: len(cluster.configurations_asked) > read)


@pytest.mark.parametrize("forgets", [True, False])
async def test_a_changed_configuration_of_a_doubted_topic_is_noticed_in_time(
    targets: Targets, cluster: Cluster, passed: list[float], forgets: bool
) -> None:
    await targets.resolve({"t"})
    targets.doubt({"t"})
    await looked_again(cluster)
    cluster.in_sync_wanted = 3
    cluster.replicas = [1, 2, 3]
    await looked_again(cluster)
    assert not targets["t"].unavailable
    if forgets:  # as a lane does that starts again
        targets.forget_all()
        await targets.resolve({"t"})
        assert targets["t"].unavailable == {0, 1, 2, 3}
    else:
        passed.append(passed[-1] + CONFIGURED_S)
        await eventually(lambda: targets["t"].unavailable == {0, 1, 2, 3})


async def test_a_configuration_that_was_read_a_while_ago_is_not_taken_for_a_recent_one(
    targets: Targets, cluster: Cluster, passed: list[float]
) -> None:
    await targets.resolve({"t"})
    targets.doubt({"t"})
    await looked_again(cluster)
    read_at = targets["t"].asked_at
    passed.append(passed[-1] + CONFIGURED_S - 1)
    await looked_again(cluster)
    assert targets["t"].asked_at == read_at


async def test_of_a_topic_that_was_gone_meanwhile_the_configuration_is_read_again(
    targets: Targets, cluster: Cluster
) -> None:
    cluster.in_sync_wanted = 2
    await targets.resolve({OWN})
    targets.doubt({OWN})
    await looked_again(cluster)
    leaders = cluster.leaders.pop(OWN)
    await eventually(lambda: targets[OWN].refusal is not None)
    cluster.in_sync_wanted, cluster.replicas = 3, [1, 2, 3]
    cluster.leaders[OWN] = leaders
    await eventually(lambda: targets[OWN].unavailable == {0})


async def test_a_topic_of_ours_is_never_waited_for(targets: Targets, cluster: Cluster) -> None:
    cluster.leaders[OWN] = [-1]
    await targets.resolve({OWN})
    assert not targets.outages


async def test_a_topic_of_ours_is_watched_while_a_partition_of_it_has_no_leader(
    targets: Targets, cluster: Cluster
) -> None:
    cluster.leaders[OWN] = [1, -1]
    await targets.resolve({OWN})
    assert targets[OWN].unavailable == {1}
    cluster.leaders[OWN] = [1, 1]
    await eventually(lambda: not targets[OWN].unavailable)
    assert targets._watch is not None
    async with asyncio.timeout(WAIT_S):
        await targets._watch


async def test_lanes_look_again_when_a_partition_of_ours_has_a_leader_again_and_only_then(
    targets: Targets, cluster: Cluster
) -> None:
    looks: list[frozenset[int]] = []
    targets.outages.changed.append(lambda: looks.append(targets[OWN].unavailable))
    cluster.leaders[OWN] = [1, -1, -1]
    await targets.resolve({OWN})
    await eventually(lambda: len(cluster.asked) > 3)
    assert looks == []
    cluster.leaders[OWN] = [1, 1, -1]
    await eventually(lambda: looks == [{2}])
    cluster.leaders[OWN] = [1, 1, 1]
    await eventually(lambda: looks == [{2}, frozenset()])


async def test_a_fault_of_a_partition_of_ours_is_known_for_a_while_after_its_end(
    targets: Targets, cluster: Cluster, passed: list[float]
) -> None:
    cluster.leaders[OWN] = [1, -1, 1]
    await targets.resolve({OWN})
    begun = passed[-1]
    assert targets.outages.known_faults() == {(OWN, 1): begun}
    assert not targets.outages
    passed.append(begun + 5)
    cluster.leaders[OWN] = [1, 1, 1]
    await eventually(lambda: not targets[OWN].unavailable)
    assert targets.outages.known_faults() == {(OWN, 1): begun + 5}
    passed.append(begun + 5 + outages_module.FORGET_S)
    assert targets.outages.known_faults() == {}


async def test_if_the_metadata_explain_the_silence_of_a_partition_of_ours_no_other_one_is_suspected(
    targets: Targets, cluster: Cluster, probes: Probes, passed: list[float]
) -> None:
    cluster.leaders[OWN] = [1, 2, 1, 2]
    await targets.resolve({OWN})
    cluster.leaders[OWN] = [1, -1, 1, 2]
    await targets.suspect([(OWN, 1), (OWN, 0)], "silent")
    assert reasons(targets) == {(OWN, 1): "silent"}
    for probed in (1, 2):
        passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
        await eventually(lambda probed=probed: probes.probed.count((OWN, 1)) == probed)  # type: ignore[misc]
        await eventually(lambda: not any(outage.is_probed for _, outage in targets.outages))
    assert reasons(targets) == {(OWN, 1): "silent"}, "an answer proves nothing of one without a leader"
    cluster.leaders[OWN] = [1, 2, 1, 2]
    passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
    await eventually(lambda: not targets.outages)


async def test_partitions_of_ours_are_suspected_and_probed_as_those_of_users_are(
    targets: Targets, cluster: Cluster, probes: Probes, passed: list[float]
) -> None:
    cluster.leaders[OWN] = [1, 2, 1, 2]
    await targets.resolve({OWN})
    probes.silent = {(OWN, 1)}
    await targets.suspect([(OWN, 1)], "silent")
    assert reasons(targets) == {(OWN, 1): "silent", (OWN, 3): "silent"}
    passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
    await eventually(lambda: reasons(targets) == {(OWN, 1): "silent"})
    probes.silent = set()
    passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
    await eventually(lambda: not targets.outages)


# -- topics that are deleted ------------------------------------------------------------------------------------------


async def test_a_topic_that_never_was_is_refused_at_once(targets: Targets) -> None:
    await targets.resolve({"nothing"})
    assert (targets["nothing"].refusal, bool(targets.outages)) == ("topic nothing does not exist", False)


async def test_firings_wait_for_a_topic_that_was_deleted_to_be_made_again(
    targets: Targets, cluster: Cluster, passed: list[float]
) -> None:
    await targets.resolve({"t"})
    del cluster.leaders["t"]
    targets.forget_all()
    await targets.resolve({"t"})
    assert reasons(targets) == {("t", WHOLE_TOPIC): "it was deleted"}
    assert (targets["t"].partitions, targets["t"].refusal) == (4, None)
    passed.append(passed[-1] + GONE_S - 1)
    cluster.leaders["t"] = [1, 1]
    await eventually(lambda: not targets.outages)
    assert (targets["t"].partitions, targets["t"].refusal) == (2, None)


async def test_a_topic_that_stays_deleted_is_one_that_does_not_exist(
    targets: Targets, cluster: Cluster, passed: list[float]
) -> None:
    await targets.resolve({"t"})
    del cluster.leaders["t"]
    targets.forget_all()
    await targets.resolve({"t"})
    passed.append(passed[-1] + GONE_S)
    await eventually(lambda: not targets.outages)
    assert targets["t"].refusal == "topic t does not exist"


async def test_each_deletion_has_its_own_time(targets: Targets, cluster: Cluster, passed: list[float]) -> None:
    await targets.resolve({"t"})
    for _ in range(2):
        del cluster.leaders["t"]
        targets.forget_all()
        await targets.resolve({"t"})
        assert targets.outages.topics == {"t"}
        passed.append(passed[-1] + 0.9 * GONE_S)
        cluster.leaders["t"] = [1]
        await eventually(lambda: not targets.outages)
        passed.append(passed[-1] + GONE_S)


async def test_a_topic_of_ours_that_was_deleted_is_missing_at_once(targets: Targets, cluster: Cluster) -> None:
    await targets.resolve({OWN})
    del cluster.leaders[OWN]
    targets.forget_all()
    await targets.resolve({OWN})
    assert targets[OWN].refusal == f"topic {OWN} does not exist"


# -- what does not answer ---------------------------------------------------------------------------------------------


async def test_if_the_metadata_explain_a_part_of_the_silence_only_that_part_is_suspected(
    targets: Targets, cluster: Cluster
) -> None:
    await targets.resolve({"t", "other"})
    cluster.leaders["t"] = [1, -1, 1, 2]
    await targets.suspect([("t", 1), ("other", 0)], "silent")
    assert reasons(targets) == {("t", 1): "it has no leader"}


async def test_if_they_explain_nothing_partitions_with_the_same_leader_are_suspected_too(
    targets: Targets, passed: list[float]
) -> None:
    await targets.resolve({"t", "other"})
    await targets.suspect([("t", 1)], "silent")
    assert reasons(targets) == {("t", 1): "silent", ("t", 3): "silent"}


async def test_if_nothing_answers_at_all_it_is_not_the_targets(targets: Targets, cluster: Cluster) -> None:
    await targets.resolve({"t"})
    cluster.is_down = True
    await targets.suspect([("t", 1)], "silent")
    assert not targets.outages


async def test_what_does_not_answer_is_probed_until_it_does(
    targets: Targets, probes: Probes, passed: list[float]
) -> None:
    await targets.resolve({"t"})
    probes.silent = {("t", 1)}
    await targets.suspect([("t", 1)], "silent")
    for probed in (1, 2):
        passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
        await eventually(lambda probed=probed: probes.probed.count(("t", 1)) == probed)  # type: ignore[misc]
    await eventually(lambda: targets.outages.places == [("t", 1)])
    probes.silent.clear()
    passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
    await eventually(lambda: not targets.outages)
    assert probes.probed.count(("t", 3)) == 1, "it has answered"


async def test_a_probe_that_is_answered_for_a_partition_without_a_leader_closes_nothing(
    targets: Targets, cluster: Cluster, probes: Probes, passed: list[float]
) -> None:
    await targets.resolve({"t"})
    await targets.suspect([("t", 1)], "silent")
    cluster.leaders["t"] = [1, -1, 1, 2]
    passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
    await eventually(lambda: reasons(targets) == {("t", 1): "it has no leader"})


async def test_an_answered_probe_counts_only_if_the_metadata_still_find_no_fault(
    targets: Targets, cluster: Cluster, probes: Probes, passed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_S", 0.0)
    await targets.resolve({"t"})
    await targets.suspect([("t", 1)], "silent")
    closed: list[Place] = []
    targets.outages.changed.append(lambda: closed.extend({("t", 1), ("t", 3)} - set(targets.outages.places)))
    watched = asyncio.Event()
    probes.then = watched.set
    look = cluster.describe_topics

    async def lost_after_the_probe(names: list[str]) -> list[dict[str, Any]]:
        if not watched.is_set():
            return await look(names)
        cluster.leaders["t"] = [1, -1, 1, -1]
        return await look(names)

    cluster.describe_topics = lost_after_the_probe  # type: ignore[method-assign]
    passed.append(passed[-1] + outages_module.FIRST_WAIT_S)
    await eventually(lambda: len(probes.probed) >= 2 and all(outage.has_known_fault for _, outage in targets.outages))
    assert closed == []


# -- brokers that do not answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", [{OWN}, {"new"}, {"t", OWN}, {"t", "new"}])
async def test_without_an_answer_nothing_is_known_of_a_new_topic_or_believed_of_one_of_ours(
    targets: Targets, cluster: Cluster, topics: set[str]
) -> None:
    await targets.resolve({"t", OWN})
    cluster.is_down = True
    targets.forget_all()
    with pytest.raises(BrokerError, match="cannot look up topics"):
        await targets.resolve(topics)


async def test_without_an_answer_the_last_one_about_a_target_is_used(
    targets: Targets, cluster: Cluster, passed: list[float]
) -> None:
    await targets.resolve({"t"})
    cluster.is_down = True
    passed.append(passed[-1] + FRESH_S)
    await targets.resolve({"t"})
    assert (targets["t"].partitions, targets["t"].refusal) == (4, None)


async def test_a_broker_that_was_never_reached_is_named(passed: list[float]) -> None:
    targets = Targets("127.0.0.1:1")
    try:
        with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
            await targets.resolve({"t"})
    finally:
        await targets.close()


# -- room -------------------------------------------------------------------------------------------------------------


async def test_topics_that_were_asked_for_longest_ago_make_room_and_ours_and_those_needed_never_do(
    targets: Targets, passed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KNOWN", 10)
    await targets.resolve({OWN, "t"})
    for number in range(9):
        passed.append(passed[-1] + 0.1)
        await targets.resolve({f"name-{number}"})
    assert len(targets._known) == 11
    await targets.resolve({"t", "one-more"})
    assert targets._known.keys() == {OWN, "t", "one-more", *(f"name-{number}" for number in range(4, 9))}


async def test_a_cycle_with_more_topics_than_there_is_room_for_finds_them_all(
    targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KNOWN", 10)
    many = {f"name-{number}" for number in range(30)}
    await targets.resolve(many)
    await targets.resolve(many | {"one-more"})
    assert many | {"one-more"} <= targets._known.keys()


async def test_a_topic_that_is_waited_for_is_not_forgotten_to_make_room(
    targets: Targets, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, passed: list[float]
) -> None:
    """Else it would be one that never was, and what waits for it a dead letter."""
    monkeypatch.setattr(module, "MOST_KNOWN", 10)
    await targets.resolve({"t"})
    del cluster.leaders["t"]
    targets.forget_all()
    await targets.resolve({"t"})
    for number in range(30):
        passed.append(passed[-1] + 0.1)
        await targets.resolve({f"name-{number}"})
    assert targets.outages.topics == {"t"}
    assert (targets["t"].partitions, targets["t"].refusal) == (4, None)


async def test_a_topic_on_trial_is_not_forgotten_to_make_room(
    targets: Targets, monkeypatch: pytest.MonkeyPatch, passed: list[float]
) -> None:
    """What is due for it is asked where it goes before the topic is looked up again."""
    monkeypatch.setattr(module, "MOST_KNOWN", 10)
    await targets.resolve({"t"})
    for _ in range(MANY_REFUSED):
        targets.trials.refused(("t", 0), [("acme", "a")])
    for number in range(30):
        passed.append(passed[-1] + 0.1)
        await targets.resolve({f"name-{number}"})
    assert targets["t"].partitions == 4
