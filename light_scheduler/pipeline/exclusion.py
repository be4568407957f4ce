"""One import at a time into an application: two that began together would both find its changelogs empty.

An import is a member of the consumer group `{app}-import` as long as it runs. Whoever finds another member there does
not begin. A group forgets a member that was killed after SESSION_MS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from light_scheduler.errors import JobError

from .job import Cluster
from .kafka.coordinators import settled
from .kafka.log_ends import TIMEOUT_S
from .kafka.silence import SILENT

SESSION_MS = 6_000
_DAY_MS = 86_400_000
_PAUSE_S = 0.2


@contextmanager
def only_import(cluster: Cluster, app_id: str, topic: str) -> Iterator[None]:
    """Be the only import into an application within the block; `topic` is any that is there. Raises JobError if another
    one runs.
    """
    group = f"{app_id}-import"
    admin = AdminClient(cluster.configuration(), logger=SILENT)
    consumer = Consumer(
        {
            **cluster.configuration(),
            "group.id": group,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": SESSION_MS // 4,
            "max.poll.interval.ms": _DAY_MS,  # it never polls while it imports
            "enable.auto.commit": False,
        },
        logger=SILENT,
    )
    try:
        try:
            _wait_until(lambda: members(admin, group) == 0, 2 * SESSION_MS / 1_000, app_id)
            joined: list[bool] = []

            def join(member: Consumer, _: list[TopicPartition]) -> None:
                member.assign([])  # it reads nothing: membership is all that counts
                joined.append(True)

            consumer.subscribe([topic], on_assign=join)
            _wait_until(lambda: consumer.poll(0) is None and bool(joined), TIMEOUT_S, app_id)
            if members(admin, group) > 1:
                raise _another(app_id)
        except KafkaException as error:
            raise JobError(f"cannot tell whether another import runs: {error.args[0].str()}") from error
        yield
    finally:
        consumer.close()


def members(admin: AdminClient, group: str) -> int:
    """Return how many members a consumer group has. Raises KafkaException."""

    def ask() -> int:
        (asked,) = admin.describe_consumer_groups([group], request_timeout=TIMEOUT_S).values()
        return len(asked.result().members)

    return settled(ask)


def _wait_until(holds: Callable[[], bool], timeout: float, app_id: str) -> None:
    """Return when something holds. Raises JobError if another import is in the way of it."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise _another(app_id)
        time.sleep(_PAUSE_S)


def _another(app_id: str) -> JobError:
    return JobError(f"another import into {app_id} runs: wait until it has ended, and look at what it did")
