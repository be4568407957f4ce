"""Faust's assignor, with members that come back at another address."""

from __future__ import annotations

import logging
from typing import cast

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from faust.assignor.client_assignment import ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor

log = logging.getLogger(__name__)


class LaneAssignor(PartitionAssignor):
    """Takes an assignment that is for another address, and says so: the member has to join again.

    A member with an `instance_id` that restarts within its session time-out gets the assignment that it had before,
    without a rebalance, and all others go on asking for its partitions at the address that it had. Its second join has
    other metadata than the first one, so Kafka lets the members share out the partitions, and learn the address.
    """

    is_known_elsewhere = False
    """Whether the last assignment was for another address."""

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Take an assignment in."""
        metadata = cast(ClientMetadata, ClientMetadata.loads(self._decompress(assignment.user_data)))
        own_url = str(self._url)
        self.is_known_elsewhere = metadata.url != own_url
        if not self.is_known_elsewhere:
            super().on_assignment(assignment)
            return
        log.info(
            "the group still has the former address of this worker, %s: joining again with %s", metadata.url, own_url
        )
        found = self._compress(_moved(metadata, own_url).dumps())
        super().on_assignment(ConsumerProtocolMemberAssignment(assignment.version, assignment.assignment, found))


def _moved(metadata: ClientMetadata, url: str) -> ClientMetadata:
    """Return an assignment for a member at another address."""
    known = metadata.url
    metadata.url = url
    for distribution in (metadata.changelog_distribution, metadata.external_topic_distribution):
        if known in distribution:
            distribution[url] = distribution.pop(known)
    return metadata
