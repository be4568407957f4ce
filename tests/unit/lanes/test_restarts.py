"""A partition that is restarted after any cycle, from any copy of its state, goes on as one that never was.

Two partitions are given the same commands at the same instants; one of them crashes. Payloads on either side of the
size above which a series' progress is kept apart from its definition make all forms of records meet.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.partition import AT, NAMES, Partition, command
from support.producing import FakeProducer
from support.tables import by_due
from support.tries import tries

from light_scheduler.engine import FiringRules
from light_scheduler.model import Headers, Outcome
from light_scheduler.tables import MemoryStore, layout
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.store import Store
from light_scheduler.wire.state import PROGRESS_KIND, SCHEDULE_KIND

SECOND = 1_000
SMALL, LARGE = b"small", bytes(range(256)) * 8

TRIGGERS: dict[str, Headers] = {
    "rate": [("schedule-every", b"60s")],
    "cron": [("schedule-cron", b"* * * * *"), ("schedule-misfire", b"all"), ("schedule-jitter", b"20s")],
    "short": [("schedule-every", b"45s"), ("schedule-max-firings", b"3"), ("schedule-ttl", b"30s")],
    "acknowledged": [
        ("schedule-every", b"60s"),
        ("schedule-ack-timeout", b"90s"),
        ("schedule-max-attempts", b"2"),
        ("schedule-overlap", b"queue"),
    ],
    "delay": [("schedule-every", b"60s"), ("schedule-mode", b"fixed-delay"), ("schedule-ack-timeout", b"90s")],
    "backoff": [("schedule-backoff", b"30s,60s,120s")],
    "once": [("schedule-after", b"70s")],
}
OTHERS: dict[str, Headers] = {
    "cancel": [],
    "pause": [],
    "resume": [],
    "trigger": [],
    "reschedule": [("schedule-every", b"120s"), ("schedule-window", b"30s")],
    "success": [],
    "failure": [],
}


class Sent(NamedTuple):
    """A command: of which kind, for which id, and, if it is a new definition, how large and whereto."""

    kind: str
    id: str
    payload: bytes = SMALL
    target: str = "reminders"


class Step(NamedTuple):
    """Time passes (ms), commands arrive, a cycle runs; then the process may end and start again with some copy."""

    passes: int
    commands: list[Sent]
    ends: str | None = None


ENDS = ("in order", "before its write", "without its disk", "without its disk after compaction")

sent = st.builds(
    Sent,
    st.sampled_from([*TRIGGERS, *OTHERS]),
    st.sampled_from("ab"),
    st.sampled_from([SMALL, LARGE]),
    st.sampled_from(["reminders", "reminders", "reminders", "missing"]),
)
steps = st.builds(
    Step,
    st.sampled_from([0, 1, 10 * SECOND, 30 * SECOND, 60 * SECOND, 200 * SECOND]),
    st.lists(sent, max_size=2),
    st.none() | st.sampled_from(ENDS),
)

# A definition grows, shrinks, is replaced while it is split, and goes, each time from another copy.
BY_HAND = [
    [Step(60 * SECOND, [], ends), *rest]
    for ends in ENDS
    for rest in (
        [],
        [Step(0, [Sent("rate", "a", SMALL)], ends), Step(60 * SECOND, [], ends), Step(0, [Sent("rate", "a", LARGE)])],
        [Step(1, [Sent("cancel", "a")], ends), Step(1, [Sent("cron", "a", LARGE)], ends), Step(200 * SECOND, [])],
        [Step(1, [Sent("reschedule", "a")], ends), Step(200 * SECOND, [], ends), Step(200 * SECOND, [])],
        [Step(1, [Sent("pause", "a")], ends), Step(200 * SECOND, [Sent("resume", "a")], ends), Step(60 * SECOND, [])],
        [Step(1, [Sent("short", "a", LARGE)], ends), Step(45 * SECOND, [], ends), Step(200 * SECOND, [], ends)],
    )
]


@pytest.mark.parametrize("rest", BY_HAND)
async def test_a_large_series_survives_every_kind_of_restart(tmp_path: Path, rest: list[Step]) -> None:
    await compare([Step(0, [Sent("rate", "a", LARGE)], "in order"), *rest, Step(200 * SECOND, [])], Disks(tmp_path))


@settings(max_examples=tries(150))
@given(st.lists(steps, min_size=2, max_size=14))
@example([Step(0, [Sent("delay", "a", LARGE)], "in order"), Step(60 * SECOND, []), Step(1, [Sent("success", "a")])])
async def test_whatever_is_sent_and_whenever_it_crashes_the_same_comes_out(history: list[Step]) -> None:
    await compare(history, Memory())


@settings(max_examples=tries(15))
@given(st.lists(steps, min_size=6, max_size=14))
async def test_so_it_is_on_disk(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await compare(history, Disks(Path(folder)))


class Memory:
    """Stores that a restarted process finds again, or does not."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def __call__(self, *, kept: bool = True) -> Store:
        self._store = self._store if kept else MemoryStore()
        return self._store


class Disks:
    """The same on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0

    def __call__(self, *, kept: bool = True) -> Store:
        self._number += not kept
        return RocksStore(self._folder / str(self._number))


async def compare(history: list[Step], stores: Callable[..., Store]) -> None:
    steady, crashing = Partition(FakeProducer()), Partition(FakeProducer(), stores())
    for partition in (steady, crashing):
        partition.rules = FiringRules(retries=1)
    fired: dict[str, tuple[str, bytes]] = {}
    now, offset = AT, 0
    for step in history:
        now += step.passes
        records = []
        for each in step.commands:
            records.append(record_of(each, fired, offset, now))
            offset += 1
        cycle = await steady.run(*records, now=now)
        assert not cycle.outcomes[Outcome.REJECTED]
        await crashing.run(*records, now=now, applies=step.ends != "before its write")
        assert seen(crashing) == seen(steady)
        for record in steady.sent("reminders"):
            headers = dict(record.headers)
            fired[headers["schedule-id"].decode()] = headers["schedule-firing-id"].decode(), headers["schedule-attempt"]
        if step.ends is not None:
            crashing.table.close()
            if step.ends.endswith("compaction"):
                crashing.compact()
            crashing.restart(stores(kept="without" not in step.ends), now=now)
        assert list(by_due(crashing.table, "default")) == list(by_due(steady.table, "default"))
        assert crashing.table.pending == steady.table.pending
        check_nothing_is_left_over(crashing)
    crashing.table.close()


def check_nothing_is_left_over(partition: Partition) -> None:
    """Hold the store and the latest records of the changelog to what is pending: a definition for each, no more."""
    store = partition.table.store
    primaries = dict(store.scan(layout.PRIMARY, layout.PRIMARY + b"\xff"))
    split = {key[1:] for key, place in primaries.items() if place.endswith(layout.SPLIT)}
    definitions = {key[1:] for key, _ in store.scan(layout.DEFINITION, layout.DEFINITION + b"\xff")}
    assert definitions == split
    assert len(list(store.scan(layout.INDEX_START, layout.INDEX_END))) == len(primaries) == partition.table.pending
    latest = {record.key: record.value for record in partition.changelog}
    kept = {key for key, value in latest.items() if value is not None}
    assert kept == {SCHEDULE_KIND + key[1:] for key in primaries} | {PROGRESS_KIND + name for name in split}


def record_of(sent: Sent, fired: dict[str, tuple[str, bytes]], offset: int, now: int) -> ConsumerRecord:
    key = sent.id.encode()
    if sent.kind in TRIGGERS:
        target = ("schedule-target-topic", sent.target.encode())
        return command(*TRIGGERS[sent.kind], target, key=key, value=sent.payload, offset=offset, timestamp=now)
    if sent.kind in ("success", "failure"):
        firing_id, attempt = fired.get(sent.id, (f"{sent.id}@{AT}", b"1"))
        headers: Headers = [
            ("schedule-command", b"complete"),
            ("schedule-firing-id", firing_id.encode()),
            ("schedule-attempt", attempt),
            ("schedule-completion", sent.kind.encode()),
        ]
    else:
        headers = [("schedule-command", sent.kind.encode()), *OTHERS[sent.kind]]
    return command(*headers, key=key, value=None, offset=offset, timestamp=now)


def seen(partition: Partition) -> list[Any]:
    """Return what a cycle made visible, in order: messages, history, dead letters."""
    topics = ("reminders", NAMES.history, NAMES.dead_letters)
    return [tuple(record) for topic in topics for record in partition.sent(topic)]
