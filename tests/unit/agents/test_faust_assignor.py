"""What members of a group tell its leader, what that makes of it, and what a member makes of an assignment."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor
from faust.types import TP
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tries import tries
from yarl import URL

from light_scheduler.agents.faust_assignor import LaneAssignor
from light_scheduler.application import build
from light_scheduler.settings import Settings

OWN, FORMER, OTHER = "http://10.0.0.9:6066", "http://10.0.0.1:6066", "http://10.0.0.2:6066"


def app_at(url: str) -> Any:
    return SimpleNamespace(
        conf=SimpleNamespace(canonical_url=URL(url)),
        tables=SimpleNamespace(changelog_topics=set(), data={}),
        tracer=None,
        sensors=Mock(),
    )


@pytest.fixture
def assignor() -> LaneAssignor:
    return LaneAssignor(app_at(OWN), replicas=1)


def assignment_for(url: str) -> ConsumerProtocolMemberAssignment:
    """Return what the group's leader gives a member that it knows at an address."""
    metadata = ClientMetadata(
        assignment=ClientAssignment(actives={"commands": [0, 2]}, standbys={"commands": [1]}),
        url=url,
        changelog_distribution={url: {}, OTHER: {}},
        external_topic_distribution={url: {"commands": [0, 2]}, OTHER: {"commands": [1, 3]}},
        topic_groups={"commands": 0},
    )
    return ConsumerProtocolMemberAssignment(0, [("commands", [0, 2])], zlib.compress(metadata.dumps()))


@pytest.mark.parametrize("url", [OWN, FORMER])
def test_an_assignment_is_taken_whichever_address_it_is_for(assignor: LaneAssignor, url: str) -> None:
    assignor.on_assignment(assignment_for(url))
    assert assignor.assigned_actives() == {TP("commands", 0), TP("commands", 2)}
    assert assignor.assigned_standbys() == {TP("commands", 1)}
    assert assignor.external_topics_metadata() == {OWN: {"commands": [0, 2]}, OTHER: {"commands": [1, 3]}}
    assert assignor.is_known_elsewhere == (url == FORMER)
    assignor.on_assignment(assignment_for(OWN))
    assert not assignor.is_known_elsewhere


@pytest.mark.parametrize("is_known_elsewhere", [True, False])
async def test_a_worker_joins_again_when_the_group_knows_another_address_of_it(
    tmp_path: Any, is_known_elsewhere: bool
) -> None:
    app = build(Settings(app_id="moves", data_dir=tmp_path))
    app.consumer = Mock()
    assert isinstance(app.assignor, LaneAssignor)
    app.assignor.is_known_elsewhere = is_known_elsewhere
    app.on_rebalance_start()
    app.on_rebalance_end()
    assert app.consumer.join_again.called == is_known_elsewhere


class Group:
    """Members by name, some with Faust's assignor, and the partitions of topics; as a broker brings them together."""

    def __init__(self, partitions: Mapping[str, int]) -> None:
        self.partitions = dict(partitions)
        self.members: dict[str, PartitionAssignor] = {}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {*range(self.partitions[topic])} if topic in self.partitions else None

    def join(self, name: str, kind: type[PartitionAssignor] = LaneAssignor) -> None:
        self.members[name] = kind(app_at(f"http://{name}:6066"), replicas=1)

    def rebalance(self, leader: str, topics: Sequence[str] = ("commands", "more")) -> None:
        said = {name: member.metadata({*topics}) for name, member in self.members.items()}
        for name, assignment in self.members[leader].assign(self, said).items():
            self.members[name].on_assignment(assignment)

    def counts(self) -> list[int]:
        return sorted(len(member.assigned_actives()) for member in self.members.values())

    def check(self, topics: Sequence[str] = ("commands", "more")) -> None:
        """Each partition has one member, and a copy at another; all know where each is."""
        places = sorted(TP(topic, number) for topic in topics for number in range(self.partitions.get(topic, 0)))
        assert sorted(tp for member in self.members.values() for tp in member.assigned_actives()) == places
        if len(self.members) > 1:
            assert sorted(tp for member in self.members.values() for tp in member.assigned_standbys()) == places
        for member in self.members.values():
            assert not member.assigned_actives() & member.assigned_standbys()
            assert (
                sorted(
                    TP(topic, number)
                    for owned in member.external_topics_metadata().values()
                    for topic, numbers in owned.items()
                    for number in numbers
                )
                == places
            )


def test_a_worker_that_joins_two_with_two_partitions_each_gets_one() -> None:
    group = Group({"commands": 4})
    for name in "abc":
        group.join(name)
        group.rebalance("a", ["commands"])
        group.check(["commands"])
    assert group.counts() == [1, 1, 2]


def test_a_topic_that_is_not_there_is_nobodys(caplog: pytest.LogCaptureFixture) -> None:
    group = Group({"commands": 4})
    group.join("a")
    group.rebalance("a")
    group.check()
    assert "topic more" in caplog.text


@pytest.mark.parametrize("partitions", [{"commands": 4, "more": 6}, {"commands": 4, "more": 4}])
@given(
    events=st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["new", "old", "leaves"])), min_size=1, max_size=10
    ),
    leaders=st.lists(st.integers(0, 3), min_size=10, max_size=10),
)
@settings(max_examples=tries(300), deadline=None)
def test_workers_share_out_beside_those_with_the_assignor_of_faust_whoever_leads(
    partitions: dict[str, int], events: list[tuple[str, str]], leaders: list[int]
) -> None:
    group = Group(partitions)
    group.join("first")
    for (name, event), number in zip(events, leaders, strict=False):
        if event == "leaves":
            group.members.pop(name, None)
        else:
            group.join(name, LaneAssignor if event == "new" else PartitionAssignor)
        leader = [*group.members][number % len(group.members)]
        group.rebalance(leader)
        group.check()
        if isinstance(group.members[leader], LaneAssignor):
            assert group.counts()[-1] - group.counts()[0] <= 1
