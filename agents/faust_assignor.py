"""Faust's assignor, with partitions shared out evenly, and members that come back at another address.

What a member says of itself when it joins, and what the group's leader gives it, have Faust's form: workers of versions
that share out otherwise can be in the same group, and lead it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, MutableMapping
from typing import cast

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor

from light_scheduler.model.place import Place

from .assignment.shares import Claim, Share, shared_out

log = logging.getLogger(__name__)


class LaneAssignor(PartitionAssignor):
    """Shares partitions out evenly (see `partition_assignment`), where this worker leads the group.

    Takes an assignment that is for another address, and says so: the member has to join again.

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

    def _perform_assignment(
        self, cluster: ClusterMetadata, member_metadata: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> MutableMapping[str, ConsumerProtocolMemberAssignment]:
        """Share the partitions out.

        Faust lets a member without partitions stay so while each of the others has as many as it may, rounded up.
        """
        said = {member: self._get_client_metadata(metadata) for member, metadata in member_metadata.items()}
        self._update_member_urls(said)
        topics = {topic for metadata in member_metadata.values() for topic in metadata.subscription}
        partitions = {topic: cluster.partitions_for_topic(topic) or () for topic in sorted(topics)}
        for topic in (topic for topic, numbers in partitions.items() if not numbers):
            log.warning("nobody is assigned topic %s: it has no partitions, or does not exist", topic)
        claims = {
            member: Claim(
                metadata.subscription, said[member].assignment.active_tps, said[member].assignment.standby_tps
            )
            for member, metadata in member_metadata.items()
        }
        assignments = {
            member: _assignment([topic for topic in claims[member].topics if partitions[topic]], share)
            for member, share in shared_out(partitions, claims, self.replicas).items()
        }
        return self._protocol_assignments(
            assignments,
            self._get_changelog_distribution(assignments),
            self._get_external_topic_distribution(assignments),
            {topic: number for number, topic in enumerate(partitions)},
        )


def _assignment(topics: Collection[str], share: Share) -> ClientAssignment:
    return ClientAssignment(
        actives={topic: _numbers(topic, share.actives) for topic in topics},
        standbys={topic: _numbers(topic, share.standbys) for topic in topics},
    )


def _numbers(topic: str, places: Collection[Place]) -> list[int]:
    return sorted(number for name, number in places if name == topic)


def _moved(metadata: ClientMetadata, url: str) -> ClientMetadata:
    """Return an assignment for a member at another address."""
    known = metadata.url
    metadata.url = url
    for distribution in (metadata.changelog_distribution, metadata.external_topic_distribution):
        if known in distribution:
            distribution[url] = distribution.pop(known)
    return metadata
