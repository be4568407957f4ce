"""Group membership: when to give up on a coordinator, and whether a consumer is still a member."""

from __future__ import annotations

import logging

from aiokafka import AIOKafkaConsumer
from aiokafka.client import ConnectionGroup

from .broker_silence import patience
from .throttling import is_throttled

HEARTBEAT_S = 2.0

log = logging.getLogger(__name__)


def bound_heartbeats(consumer: AIOKafkaConsumer) -> None:
    """Make a started group member look for another coordinator when a heartbeat is not answered."""
    coordinator, client = consumer._coordinator, consumer._client
    beat = coordinator._do_heartbeat

    async def do_heartbeat() -> bool:
        place = coordinator.coordinator_id, ConnectionGroup.COORDINATION
        conn = client._conns.get(place)  # a new login may replace it meanwhile
        if conn is not None and not conn.connected():
            conn = None
        try:
            async with patience(HEARTBEAT_S, lambda: is_throttled(conn or client._conns.get(place))):
                return bool(await beat())
        except TimeoutError:
            log.warning("the coordinator of group %s does not answer heartbeats", coordinator.group_id)
        conn = conn or client._conns.get(place)
        if conn is not None:
            conn.close()  # without a timeout as the reason: the broker may be healthy and wait for replicas
        coordinator.coordinator_dead()
        return False

    coordinator._do_heartbeat = do_heartbeat


def check_coordination(consumer: AIOKafkaConsumer) -> None:
    """Raise the error that ended a consumer's group membership, since aiokafka reports it nowhere else.

    The consumer would look healthy, but get no more partitions. After a Kafka error, aiokafka's task pauses until
    records are read through its own methods, which lanes do not use.
    """
    coordinator = consumer._coordinator
    if coordinator._pending_exception is not None:
        raise coordinator._pending_exception
    task = coordinator._coordination_task
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error


async def is_member(consumer: AIOKafkaConsumer) -> bool:
    """Send a heartbeat. Return whether the coordinator accepted it for our generation.

    A joining member is not a member yet, and this sends nothing: a broker answers the requests of a connection in
    order, so the heartbeat would wait behind the join, and its timeout would end the join. Raises KafkaError.
    """
    coordinator = consumer._coordinator
    if coordinator._heartbeat_task is None:  # aiokafka's own heartbeats stop before a join, and restart after it
        return False
    generation = coordinator.generation
    return bool(await coordinator._do_heartbeat()) and coordinator.generation == generation
