"""Faust's assignor, changed to distribute partitions evenly, and to handle members that return at another address.

Metadata of joining members and assignments have Faust's format. So workers of versions with another distribution can be
in the same group, and lead it.
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
    """Distributes partitions evenly (see `partition_assignment`) if this worker leads the group.

    Accepts an assignment for another address, and sets `is_known_elsewhere`: the member must then join again.

    A member with an `instance_id` that restarts within its session timeout gets its previous assignment, without a
    rebalance, and the others still send requests for its partitions to its old address. When it joins again, its
    metadata has changed, so Kafka starts a rebalance, in which all members learn the new address.
    """

    is_known_elsewhere = False
    """Whether the last assignment was for another address of this worker."""

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Accept an assignment."""
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
        """Distribute the partitions.

        Faust's own assignor leaves a member without partitions while others have their maximum, which is rounded up.
        """
        said = {member: self._get_client_metadata(metadata) for member, metadata in member_metadata.items()}
        self._update_member_urls(said)
        topics = {topic for metadata in member_metadata.values() for topic in metadata.subscription}
        partitions = {topic: cluster.partitions_for_topic(topic) or () for topic in sorted(topics)}
        for topic in (topic for topic, numbers in partitions.items() if not numbers):
            log.warning("topic %s is assigned to no worker: it has no partitions, or does not exist", topic)
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
    """Replace the address of a member in its assignment."""
    known = metadata.url
    metadata.url = url
    for distribution in (metadata.changelog_distribution, metadata.external_topic_distribution):
        if known in distribution:
            distribution[url] = distribution.pop(known)
    return metadata
