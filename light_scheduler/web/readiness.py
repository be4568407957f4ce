"""Whether this worker runs all of its assigned partitions."""

from __future__ import annotations

from light_scheduler.lanes.context.status import TOLD_TO_ALL
from light_scheduler.model.lane_state import LaneState

from .interfaces import Access, Lanes, Peers


def why_not_ready(lanes: Lanes, peers: Peers, topics: frozenset[str], access: Access) -> list[str]:
    """Return a reason for each assigned partition that does not run; empty once all run.

    Anyone may ask, so the error of a failed lane is not included: it can name topics of tenants. A worker without
    partitions is ready, since there can be more workers than partitions.
    """
    owners = peers.owners()
    if not owners:
        return ["no partitions were assigned yet"]
    lanes_by_id = {(lane.topic, lane.partition): lane for lane in lanes.status()}
    assigned = {
        (topic, partition)
        for topic, partitions in owners.get(peers.own_url, {}).items()
        if topic in topics
        for partition in partitions
    }
    reasons = [] if access.is_loaded else ["the tokens have not been read yet"]
    for topic, partition in sorted(assigned | lanes_by_id.keys()):
        lane = lanes_by_id.get((topic, partition))
        if lane is None:
            reasons.append(f"{topic}[{partition}] has no lane yet")
        elif lane.state != LaneState.RUNNING:
            why = f": {lane.reason}" if lane.reason in TOLD_TO_ALL else ""
            if lane.state == LaneState.RESTORING and lane.restore is not None:
                why = f": {lane.restore}"
            reasons.append(f"{topic}[{partition}] is {lane.state}{why}")
    return reasons
