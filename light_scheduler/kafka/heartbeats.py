"""A member of a group: when it gives its coordinator up, whether the group accepts it, whether it still takes part."""

from __future__ import annotations

import logging

from aiokafka import AIOKafkaConsumer
from aiokafka.client import ConnectionGroup

from .broker_silence import patience
from .throttling import is_throttled

HEARTBEAT_S = 2.0

log = logging.getLogger(__name__)


def bound_heartbeats(consumer: AIOKafkaConsumer) -> None:
    """Have a started member of a group look for another coordinator when a heartbeat is not answered."""
    coordinator, client = consumer._coordinator, consumer._client
    beat = coordinator._do_heartbeat

    async def do_heartbeat() -> bool:
        place = coordinator.coordinator_id, ConnectionGroup.COORDINATION
        conn = client._conns.get(place)  # which a new login may replace meanwhile
        if conn is not None and not conn.connected():
            conn = None
        try:
            async with patience(HEARTBEAT_S, lambda: is_throttled(conn or client._conns.get(place))):
                return bool(await beat())
        except TimeoutError:
            log.warning("the coordinator of group %s does not answer heartbeats", coordinator.group_id)
        conn = conn or client._conns.get(place)
        if conn is not None:
            conn.close()  # not for a time-out: the broker may be well, and wait for replicas
        coordinator.coordinator_dead()
        return False

    coordinator._do_heartbeat = do_heartbeat


def check_coordination(consumer: AIOKafkaConsumer) -> None:
    """Raise the error with which a consumer's part in its group has ended: nothing else would tell of it.

    It would be given no partition again, and look healthy. With an error of Kafka, aiokafka's task stands still until
    somebody reads records its way, which lanes do not.
    """
    coordinator = consumer._coordinator
    if coordinator._pending_exception is not None:
        raise coordinator._pending_exception
    task = coordinator._coordination_task
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error


async def is_member(consumer: AIOKafkaConsumer) -> bool:
    """Send a heartbeat; return whether the coordinator took it, in the generation that we believe in.

    A member that joins is none until it has joined. Nothing is sent then: a broker answers the requests of a connection
    in order, so a heartbeat would wait behind the join, and end it by its time-out. Raises KafkaError.
    """
    coordinator = consumer._coordinator
    if coordinator._heartbeat_task is None:  # aiokafka's own beats end before a join, and begin after it
        return False
    generation = coordinator.generation
    return bool(await coordinator._do_heartbeat()) and coordinator.generation == generation
