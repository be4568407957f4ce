"""What a member of the group makes of an assignment, whichever address it is for."""

from __future__ import annotations

import zlib
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.types import TP
from yarl import URL

from light_scheduler.agents.assignor import LaneAssignor
from light_scheduler.application import build
from light_scheduler.settings import Settings

OWN, FORMER, OTHER = "http://10.0.0.9:6066", "http://10.0.0.1:6066", "http://10.0.0.2:6066"


@pytest.fixture
def assignor() -> LaneAssignor:
    app: Any = SimpleNamespace(
        conf=SimpleNamespace(canonical_url=URL(OWN)), tables=SimpleNamespace(changelog_topics=set())
    )
    return LaneAssignor(app, replicas=1)


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
