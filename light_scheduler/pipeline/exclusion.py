"""Mutual exclusion of jobs that would interfere: imports into the same application, and audits that continue the same
state. Two imports that began together would both find the changelogs empty.

Such a job is a member of a consumer group while it runs. If the group has another member, the job does not begin. A
group forgets a killed member after SESSION_MS.
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
    """Within the block, be the only import into an application. `topic` can be any existing topic. Raises JobError if
    another import runs."""
    another = f"another import into {app_id} runs: wait until it has ended, and look at what it did"
    return _only_member(cluster, f"{app_id}-import", topic, another)


def only_audit(cluster: Cluster, app_id: str, path: str, topic: str) -> AbstractContextManager[None]:
    """Within the block, be the only audit of an application with the state at a path. `topic` can be any existing
    topic. Raises JobError if another one runs."""
    state = blake2b(f"{app_id}\0{path}".encode(), digest_size=8).hexdigest()
    another = f"another audit uses {path}: wait until it has ended, or give --since-last another path"
    return _only_member(cluster, f"light-scheduler-audit-{state}", topic, another)


@contextmanager
def _only_member(cluster: Cluster, group: str, topic: str, another: str) -> Iterator[None]:
    """Within the block, be the only member of a group. Raises JobError with the text `another` if there is another
    member."""
    admin = AdminClient(cluster.configuration(), logger=SILENT)
    consumer = Consumer(
        {
            **cluster.configuration(),
            "group.id": group,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": SESSION_MS // 4,
            "max.poll.interval.ms": _DAY_MS,  # the job does not poll while it works
            "enable.auto.commit": False,
        },
        logger=SILENT,
    )
    try:
        try:
            _wait_until(lambda: members(admin, group) == 0, 2 * SESSION_MS / 1_000, another)
            joined: list[bool] = []

            def join(member: Consumer, _: list[TopicPartition]) -> None:
                member.assign([])  # it reads nothing; only its membership matters
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
    """Return the number of members of a consumer group. Raises KafkaException."""

    def ask() -> int:
        (asked,) = admin.describe_consumer_groups([group], request_timeout=TIMEOUT_S).values()
        return len(asked.result().members)

    return settled(ask)


def _wait_until(holds: Callable[[], bool], timeout: float, another: str) -> None:
    """Return when a condition holds. Raises JobError with the text `another` after the timeout."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise JobError(another)
        time.sleep(_PAUSE_S)
