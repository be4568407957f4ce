from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiokafka.structs import ConsumerRecord

from light_scheduler.agents.commands import hand_to_lanes
from light_scheduler.agents.transport import CommandBatch
from light_scheduler.lanes.input.intake import MAX_WAITING_BYTES, Intake


@dataclass
class PartitionOf:
    """The part of a lane that commands arrive at."""

    intake: Intake


def opened(position: int) -> Any:
    intake = Intake(lambda: None, lambda: None)
    intake.open(position, position)
    return PartitionOf(intake)


def records(*offsets: int) -> list[ConsumerRecord]:
    return [ConsumerRecord("commands", 0, offset, 0, 0, None, b"", None, -1, -1, ()) for offset in offsets]


async def stream(*batches: CommandBatch) -> AsyncIterator[CommandBatch]:
    for batch in batches:
        yield batch


async def test_each_batch_arrives_whole_at_its_own_lane() -> None:
    one, other = opened(0), opened(7)
    await hand_to_lanes(
        stream(
            CommandBatch(one, one.intake.epoch, 0, records(0, 1)),
            CommandBatch(other, other.intake.epoch, 7, records(7)),
            CommandBatch(one, one.intake.epoch, 2, records(2)),
        )  # type: ignore[arg-type]  # a stream of Faust's is used as an iterator only
    )
    assert [record.offset for record in one.intake.take(10)] == [0, 1, 2]
    assert [record.offset for record in other.intake.take(10)] == [7]


async def test_a_lane_learns_how_large_the_commands_of_a_batch_are() -> None:
    one = opened(0)
    batch = CommandBatch(one, one.intake.epoch, 0, records(0), MAX_WAITING_BYTES)
    await hand_to_lanes(stream(batch))  # type: ignore[arg-type]
    assert one.intake.is_full


async def test_a_batch_that_its_lane_cannot_take_does_not_stop_the_others() -> None:
    closed, gap, fine = opened(0), opened(0), opened(0)
    epoch = closed.intake.epoch
    closed.intake.close()
    await hand_to_lanes(
        stream(
            CommandBatch(closed, epoch, 0, records(0)),
            CommandBatch(gap, gap.intake.epoch, 5, records(5)),
            CommandBatch(fine, fine.intake.epoch, 0, records(0)),
        )  # type: ignore[arg-type]
    )
    assert closed.intake.take(10) == gap.intake.take(10) == []
    assert gap.intake.needs_seek
    assert [record.offset for record in fine.intake.take(10)] == [0]
