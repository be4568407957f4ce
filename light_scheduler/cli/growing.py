"""Adds partitions to a commands topic, and follows the moving schedules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from light_scheduler.errors import ConfigurationError
from light_scheduler.kafka.compacted import stored_entries
from light_scheduler.kafka.topic_admin import (
    REACH_S,
    TIMEOUT_S,
    admin_client,
    grow_topic,
    is_empty,
    partition_counts,
    topic_id,
)
from light_scheduler.kafka.topic_commands import create_topics_command, grow_topic_command
from light_scheduler.lanes.growing.records import TopicIncarnation, partitioning_in
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.settings import Settings
from light_scheduler.wire import dialect_named

POLL_S = 0.5


def topic_to_grow(settings: Settings, name: str | None) -> str:
    """Return the commands topic to grow. Raises ConfigurationError if it is not clear which one, or if it cannot
    grow."""
    sources = {source.name: source for source in settings.inputs}
    if name is None and len(sources) > 1:
        raise ConfigurationError("commands_topics", f"has several: name one of {', '.join(sources)} (--commands-topic)")
    name = name or next(iter(sources))
    if name not in sources:
        raise ConfigurationError("commands_topics", f"does not have {name}: it has {', '.join(sources)}")
    dialect = sources[name].dialect
    if not dialect_named(dialect).forwards:
        raise ConfigurationError(
            "commands_topics",
            f"{name} has the dialect {dialect}, whose producers choose partitions in their own way, so schedules "
            "cannot follow their keys: make a new topic with more partitions and let the old one run empty",
        )
    return name


def partitioning_of(settings: Settings, topic: str) -> Partitioning | None:
    """Return the current partitioning of a commands topic; None if no worker has recorded it yet."""
    incarnation = TopicIncarnation(topic, topic_id(settings.connection, topic))
    entries = asyncio.run(stored_entries(settings.connection, settings.topics.tenants, TIMEOUT_S))
    return partitioning_in(entries, incarnation)


def grow(settings: Settings, topic: str, partitions: int) -> None:
    """Add partitions up to a number. Raises ConfigurationError if that must not be, or not now, and BrokerError."""
    admin = admin_client(settings.connection)
    counts = partition_counts(admin, settings.connection, REACH_S)
    changelog = settings.topics.changelog(topic)
    former = counts.get(changelog, 0)
    partitioning = partitioning_of(settings, topic)
    if counts.get(topic) == partitions > former:
        # No worker starts before the changelog has as many partitions. A worker that then finds no record takes every
        # schedule to be where its key belongs, so without a record, there must be no schedule.
        if partitioning is None and not is_empty(admin, changelog, former):
            others = {name: count for name, count in counts.items() if name != topic}
            raise ConfigurationError(
                "partitions",
                f"cannot be raised for {changelog}: it has the state of {former} partitions, and no worker has "
                f"recorded which partitions the keys of {topic} belong to, as after it was deleted and created again. "
                f"Schedules would not move with their keys: some could not be cancelled, or would fire twice. "
                f"Delete {topic}, which loses commands that no worker has read, create it as it was "
                f"(`{create_topics_command(settings, others)}`), start a worker, and try again",
            )
        grow_topic(settings, topic, partitions)
        return
    if partitioning is None:
        raise ConfigurationError(
            "partitions",
            f"cannot be raised yet: no worker of this version has run with {topic}, and only workers record which "
            "partitions keys belong to. Start one, wait until it is ready, and try again",
        )
    if partitions < partitioning.partitions:
        raise ConfigurationError(
            "partitions", f"must be at least {partitioning.partitions} for {topic}: Kafka cannot remove partitions"
        )
    if partitions > partitioning.partitions and not partitioning.is_settled:
        raise ConfigurationError(
            "partitions",
            f"cannot be raised now: schedules still move from {partitioning.former} "
            f"to {partitioning.partitions} partitions. "
            f"Watch them with `{grow_topic_command(settings, topic, partitioning.partitions)}`",
        )
    grow_topic(settings, topic, partitions)


def progress_of(partitioning: Partitioning | None, partitions: int) -> str | None:
    """Describe how far schedules have moved; None if all have."""
    if partitioning is None or partitioning.partitions < partitions:
        return "Waiting for a worker to notice the new partitions"
    if partitioning.is_settled:
        return None
    if not partitioning.all_run:
        return f"{len(partitioning.running)} of {partitioning.partitions} partitions run"
    return f"{len(partitioning.settled)} of {partitioning.partitions} partitions have all of their schedules"


def moved(settings: Settings, topic: str, partitions: int, wait_s: float, show: Callable[[str], None]) -> bool:
    """Wait until all schedules have moved. Return False if they have not after `wait_s`."""
    deadline = time.monotonic() + wait_s
    while (progress := progress_of(partitioning_of(settings, topic), partitions)) is not None:
        show(progress)
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
