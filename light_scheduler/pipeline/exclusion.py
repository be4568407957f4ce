"""One job at a time where two would spoil each other's work: imports into one application, audits that continue one
state. Two imports that began together would both find the changelogs empty.

Such a job is a member of a consumer group as long as it runs. Whoever finds another member there does not begin. A
group forgets a member that was killed after SESSION_MS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from light_scheduler.connection.coordinators import settled
from light_scheduler.errors import JobError

from .job import Cluster
from .kafka.log_ends import TIMEOUT_S
from .kafka.silence import SILENT

SESSION_MS = 6_000
_DAY_MS = 86_400_000
_PAUSE_S = 0.2


def only_import(cluster: Cluster, app_id: str, topic: str) -> AbstractContextManager[None]:
    """Be the only import into an application within the block; `topic` is any that is there. Raises JobError if another
    one runs.
    """
    another = f"another import into {app_id} runs: wait until it has ended, and look at what it did"
    return _only_member(cluster, f"{app_id}-import", topic, another)


def only_audit(cluster: Cluster, app_id: str, path: str, topic: str) -> AbstractContextManager[None]:
    """Be the only audit of an application that uses the state at a path within the block; `topic` is any that is there.
    Raises JobError if another one does.
    """
    state = blake2b(f"{app_id}\0{path}".encode(), digest_size=8).hexdigest()
    another = f"another audit uses {path}: wait until it has ended, or give --since-last another path"
    return _only_member(cluster, f"light-scheduler-audit-{state}", topic, another)


@contextmanager
def _only_member(cluster: Cluster, group: str, topic: str, another: str) -> Iterator[None]:
    """Be the only member of a group within the block. Raises JobError, which says that there is `another`."""
    admin = AdminClient(cluster.configuration(), logger=SILENT)
    consumer = Consumer(
        {
            **cluster.configuration(),
            "group.id": group,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": SESSION_MS // 4,
            "max.poll.interval.ms": _DAY_MS,  # it never polls while it works
            "enable.auto.commit": False,
        },
        logger=SILENT,
    )
    try:
        try:
            _wait_until(lambda: members(admin, group) == 0, 2 * SESSION_MS / 1_000, another)
            joined: list[bool] = []

            def join(member: Consumer, _: list[TopicPartition]) -> None:
                member.assign([])  # it reads nothing: membership is all that counts
                joined.append(True)

            consumer.subscribe([topic], on_assign=join)
            _wait_until(lambda: consumer.poll(0) is None and bool(joined), TIMEOUT_S, another)
            if members(admin, group) > 1:
                raise JobError(another)
        except KafkaException as error:
            raise JobError(f"cannot tell whether the group {group} has other members: {error.args[0].str()}") from error
        yield
    finally:
        consumer.close()


def members(admin: AdminClient, group: str) -> int:
    """Return how many members a consumer group has. Raises KafkaException."""

    def ask() -> int:
        (asked,) = admin.describe_consumer_groups([group], request_timeout=TIMEOUT_S).values()
        return len(asked.result().members)

    return settled(ask)


def _wait_until(holds: Callable[[], bool], timeout: float, another: str) -> None:
    """Return when something holds. Raises JobError if another member is in the way of it."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise JobError(another)
        time.sleep(_PAUSE_S)
