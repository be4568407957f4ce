"""The Faust agents, one for each commands topic. An event is a batch of commands of one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faust import StreamT

from light_scheduler.settings import Settings

from .faust_worker import without_discovery
from .transport import CommandBatch

if TYPE_CHECKING:
    from faust import App


def attach_command_agents(app: App, settings: Settings) -> None:
    """Create an agent for each commands topic. Lanes commit the offsets, not Faust."""
    for source in settings.inputs:
        topic = app.topic(source.name, key_serializer="raw", value_serializer="raw", acks=False)
        with without_discovery():
            app.agent(topic, name=f"commands-{source.name}")(hand_to_lanes)


async def hand_to_lanes(batches: StreamT[CommandBatch]) -> None:
    """Add each batch to the intake of its lane. Awaiting the lane here would block other partitions."""
    async for batch in batches:
        batch.lane.intake.offer(batch.epoch, batch.first, batch.records, batch.size)
