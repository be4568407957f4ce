"""Looks up the last stable offsets of partitions, some of which may not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.kafka.clients import LaneClients
from light_scheduler.kafka.fetching import StateConsumer
from light_scheduler.kafka.target_lookup import TargetLookup
from light_scheduler.model.place import Place
from light_scheduler.tables.changelog import reading

TIMEOUT_S = 2.0


async def stable_ends(
    places: list[Place], clients: LaneClients, targets: TargetLookup, trusted: Collection[str] = ()
) -> dict[Place, int | KafkaError]:
    """Return the last stable offset of each place that answers, or its error.

    Places that do not answer are suspected, unless their topic is `trusted`. Raises the errors of connecting to the
    cluster.
    """
    ends: dict[Place, int | KafkaError] = {}

    async def look_up(reader: StateConsumer, place: Place) -> None:
        tp = TopicPartition(*place)
        try:
            ends[place] = (await reader.end_offsets([tp]))[tp]
        except KafkaError as error:
            ends[place] = error

    try:
        async with asyncio.timeout(TIMEOUT_S), reading(clients) as reader:
            await asyncio.gather(*(look_up(reader, place) for place in places))
    except TimeoutError:
        if silent := {place for place in places if place not in ends and place[0] not in trusted}:
            await targets.suspect(silent, "it does not say where it ends")
    return ends
