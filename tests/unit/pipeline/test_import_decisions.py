"""What an import makes of a schedule: the same one, older than every command of its new topic."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from light_scheduler.engine.bulk import concerns
from light_scheduler.engine.limits import Limits
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import BulkPart, ControlCommand, Entry, HomeKey, Once, Progress, Schedule, Selection, Target
from light_scheduler.pipeline.import_decisions import Destination, adopted, place_in, refusal_of
from light_scheduler.tables.layout import index_key
from light_scheduler.wire import partition_for
from light_scheduler.wire.state import decode_entry, encode_entry, identity_of

AT = 1_900_000_000_000
LONGEST_LOG = 1 << 40


def entry(id: str = "a", arrival: int = 7, target: str = "t", payload: bytes = b"x", **progress: Any) -> Entry:
    schedule = Schedule("acme", id, 3, Once(AT), Target(target, b"key"), payload, [], 1, arrival, AT)
    return Entry(schedule, Progress(AT, arrival, **progress))


@pytest.mark.parametrize("offset", [0, 1, 1_000])
@pytest.mark.parametrize(("arrival", "bulk_offset"), [(0, 0), (5_000, 0), (5_000, 6_000), (LONGEST_LOG, LONGEST_LOG)])
def test_a_bulk_command_at_any_offset_concerns_what_was_imported(arrival: int, bulk_offset: int, offset: int) -> None:
    command = ControlCommand("cancel", "acme", "*", None, 0, offset, AT, selection=Selection())
    part = BulkPart(command, 0, 1)
    assert concerns(part, adopted(entry(arrival=arrival, bulk_offset=bulk_offset), {}))


@pytest.mark.parametrize("imports", [1, 2, 1_000])
def test_the_order_of_arrival_is_kept_before_all_that_arrives_later(imports: int) -> None:
    entries = [entry(id, arrival) for id, arrival in (("c", 0), ("b", 1), ("a", LONGEST_LOG))]
    for _ in range(imports):
        entries = [adopted(decode_entry(encode_entry(each)), {}) for each in entries]
    entries.append(entry("0", arrival=0))
    keys = [index_key(each, identity_of(each)) for each in entries]
    assert keys == sorted(keys)


def test_a_schedule_goes_to_the_partition_of_its_key_among_another_number_and_stays_among_the_same() -> None:
    stored = entry("a")
    keyed = Entry(msgspec.structs.replace(stored.schedule, home_key=b"shop-7"), stored.progress)
    unknown = Entry(msgspec.structs.replace(stored.schedule, home_key=HomeKey.UNKNOWN), stored.progress)
    assert place_in(Destination("log", 4), keyed, 3, 4) == place_in(Destination("log", 4), unknown, 3, 4) == 3
    assert place_in(Destination("log", 64), keyed, 3, 4) == partition_for(b"shop-7", 64) != 3
    with pytest.raises(InvalidCommand, match=r"without its key.*import into topics with 4"):
        place_in(Destination("log", 64), unknown, 3, 4)


def test_all_else_stays_and_targets_get_their_new_names() -> None:
    before = entry(sequence=5, paused=True, triggered=(AT + 1,))
    after = adopted(before, {"t": "u", "v": "w"})
    assert after.schedule == msgspec.structs.replace(before.schedule, target=Target("u", b"key"))
    progress = before.progress
    assert after.progress == msgspec.structs.replace(progress, arrival=after.progress.arrival, bulk_offset=-1)
    assert adopted(before, {"v": "w"}).schedule == before.schedule


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (entry(), None),
        (entry(payload=b"x" * 11), "payload: has 11 bytes; at most 10 are allowed"),
        (entry(id="123456"), "schedule-id: is longer than 5 bytes"),
        (
            entry(target="mine"),
            "schedule-target-topic: mine is an internal topic: only the scheduler and Kafka write to it",
        ),
    ],
)
def test_the_limits_of_commands_hold_for_what_is_imported(stored: Entry, reason: str | None) -> None:
    assert refusal_of(stored, Limits(10, 5, frozenset({"mine"}))) == reason
