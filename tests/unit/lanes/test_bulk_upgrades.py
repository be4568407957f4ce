"""Bulk commands that an earlier version has left at work in a topic that grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.partition import AT, Kept, command

from light_scheduler.model.bulk import ScopedPart, SubTotal
from light_scheduler.tables import MemoryStore, Overlay
from scripts.record_state import bytes_of

from .test_bulk_growth import FORMER, GROWING, Topic

GOLDEN = Path(__file__).parents[2] / "golden" / "growth"
RECORDINGS = sorted(GOLDEN.glob("*.json"))
"""By the version of the records that only such a bulk command has (scripts/record_growth.py)."""


def recorded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
    return found


def resumed(path: Path) -> Topic:
    """Return the topic as a version has left it: the state of one partition, and what waits in the logs of all."""
    topic, left = Topic(), recorded(path)
    topic.know(GROWING)
    partition = topic.partitions[FORMER]
    partition.changelog = [Kept(each[0], bytes_of(each[1]) or b"", bytes_of(each[2])) for each in left["changelog"]]
    partition.restart(MemoryStore(), now=AT)
    for number, waiting in enumerate(left["waiting"]):
        for offset, key, value, headers in waiting:
            ours = [(name, bytes_of(text)) for name, text in headers]
            topic.waiting[number].append(
                command(*ours, key=bytes_of(key), value=bytes_of(value), offset=offset, partition=number, timestamp=AT)
            )
            topic.ends[number] = offset + 1
    topic.ends[FORMER] = max(topic.ends[FORMER], 2)
    return topic


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_has_records_of_its_version_alone(path: Path) -> None:
    """A bulk part, its total and the one above, which earlier versions refuse."""
    overlay = Overlay(resumed(path).partitions[FORMER].table)
    assert [type(part) for part in overlay.others.bulk_parts()] == [ScopedPart]
    assert [type(total) for total in overlay.others.bulk_totals().values()] == [SubTotal, SubTotal]
    versions = {(bytes_of(value) or b"\0")[0] for _, _, value in recorded(path)["changelog"]}
    assert int(path.stem) in versions


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
async def test_a_bulk_command_that_an_earlier_version_has_begun_is_finished_and_answered_once(path: Path) -> None:
    topic = resumed(path)
    await topic.settle()
    topic.judge(1)
    assert topic.reasons == [None]
    assert not any(Overlay(partition.table).others.bulk_totals() for partition in topic.partitions)
