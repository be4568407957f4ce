"""Giving a commands topic more partitions, and watching the schedules move."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from light_scheduler.errors import ConfigurationError
from light_scheduler.kafka.compacted import stored_entries
from light_scheduler.kafka.topic_admin import TIMEOUT_S, grow_topic, topic_id
from light_scheduler.lanes.placement_records import TopicIncarnation, placement_in
from light_scheduler.model.placement import Placement
from light_scheduler.settings import Settings
from light_scheduler.wire import dialect_named

POLL_S = 0.5


def topic_to_grow(settings: Settings, name: str | None) -> str:
    """Return the commands topic that is meant. Raises ConfigurationError if none, or none that can grow, is."""
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


def placement_of(settings: Settings, topic: str) -> Placement | None:
    """Return what holds for the partitions of a commands topic; None: no worker has noted it yet."""
    incarnation = TopicIncarnation(topic, topic_id(settings.connection, topic))
    entries = asyncio.run(stored_entries(settings.connection, settings.topics.tenants, TIMEOUT_S))
    return placement_in(entries, incarnation)


def grow(settings: Settings, topic: str, partitions: int) -> None:
    """Add partitions up to a number. Raises ConfigurationError if that must not be, or not now."""
    placement = placement_of(settings, topic)
    if placement is None:
        raise ConfigurationError(
            "partitions",
            f"cannot be raised yet: no worker of this version has run with {topic}, and only workers record which "
            "partitions keys belong to. Start one, wait until it is ready, and try again",
        )
    if partitions < placement.partitions:
        raise ConfigurationError(
            "partitions", f"of {topic} are {placement.partitions}, and Kafka cannot remove any: give a larger number"
        )
    if partitions > placement.partitions and not placement.is_settled:
        raise ConfigurationError(
            "partitions",
            f"cannot be raised now: schedules still move from {placement.former} to {placement.partitions} partitions. "
            f"Watch them with `light-scheduler topics grow --partitions {placement.partitions}`",
        )
    grow_topic(settings, topic, partitions)


def progress_of(placement: Placement | None, partitions: int) -> str | None:
    """Say how far schedules have moved; None: all have."""
    if placement is None or placement.partitions < partitions:
        return "Waiting for a worker to notice the new partitions"
    if placement.is_settled:
        return None
    if not placement.all_run:
        return f"{len(placement.running)} of {placement.partitions} partitions run"
    return f"{len(placement.settled)} of {placement.partitions} partitions have all of their schedules"


def moved(settings: Settings, topic: str, partitions: int, wait_s: float, show: Callable[[str], None]) -> bool:
    """Wait until all schedules are where they belong; False: not all are after `wait_s`."""
    deadline = time.monotonic() + wait_s
    while (progress := progress_of(placement_of(settings, topic), partitions)) is not None:
        show(progress)
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
