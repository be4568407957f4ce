"""Records the state that this version of the scheduler stores, for `tests/unit/tables/test_upgrades.py`.

    python scripts/record_state.py tests/golden/state/1

Run it in a checkout of the version whose state is to be recorded. It writes into a folder:

    changelog.json   the changelog of a partition: [offset, key, value or null], base64
    copy.tar.xz      RocksDB's local copy of it, after a clean stop
    expected.json    what that version delivers from there on: [topic, partition, key, value, headers], base64
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.in_memory.partition import MemoryPartition
from light_scheduler.model import Headers
from light_scheduler.settings import Settings
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.store import Store
from light_scheduler.wire.state import CommandsLog

SETTINGS = Settings(app_id="recorded", partitions=1)
TARGET, MISSING = "recorded-target", "no-such-topic"
BEGIN = 1_767_225_600_000
RECORDED_AT = BEGIN + 90_000
"""When the state is recorded: series have progressed by then, and a bulk command is in progress."""

UNTIL = RECORDED_AT + 3_600_000
MOST = 4
"""Maximum number of commands, and of schedules of a bulk command, in a cycle."""

LARGE = b"large " * 180
SERIES = {
    "every": {"every": "20s", "max-firings": "40"},
    "every-large": {"every": "30s", "max-firings": "20"},
    "delay": {"every": "1m", "mode": "fixed-delay", "ack-timeout": "5m", "max-attempts": "2", "max-firings": "3"},
    "cron": {"cron": "*/15 * * * *", "timezone": "Europe/Berlin", "jitter": "90s"},
    "quartz": {"cron": "0 0 12 ? * MON-FRI", "cron-dialect": "quartz", "misfire": "skip", "misfire-grace": "10s"},
    "backoff": {"backoff": "10s,1m,5m"},
    "exponential": {"backoff": "initial=5s factor=3 max=10m attempts=5 jitter=0.1"},
    "bounded": {"every": "1m", "start": str(BEGIN + 30_000), "end": str(BEGIN + 600_000)},
    "queued": {"every": "20s", "ack-timeout": "10m", "max-attempts": "3", "overlap": "queue", "max-firings": "5"},
    "paused": {"every": "1h", "paused": "true"},
}
"""Ids of series, with their control headers without the prefix."""

LABELLED = {"priority": "7", "ttl": "1h", "labels": "team=billing,kind=reminder"}


def new_scheduler(store: Store) -> MemoryScheduler:
    """Return a scheduler of one partition with its state in a store, and its clock at `BEGIN`."""
    scheduler = MemoryScheduler(SETTINGS, BEGIN, topics={TARGET: 4}, most=MOST)
    scheduler.broker._unread = frozenset()
    table = ScheduleTable(store)
    names = SETTINGS.topics
    table.checkpoint = msgspec.structs.replace(
        table.checkpoint,
        changelog_id="recorded-changelog",
        commands_log=CommandsLog("recorded-commands-id", SETTINGS.app_id, names.commands),
    )
    partition_of(scheduler)._table = table
    return scheduler


def partition_of(scheduler: MemoryScheduler) -> MemoryPartition:
    """Return the only partition."""
    return scheduler._partitions[0]


def control(fields: Mapping[str, str]) -> Headers:
    """Return control headers."""
    return [(f"schedule-{name}", value.encode()) for name, value in fields.items()]


def send_all(scheduler: MemoryScheduler) -> None:
    """Create schedules of every kind."""
    for id, fields in SERIES.items():
        given = {"id": id, "target-topic": TARGET, "target-key": id, **fields}
        scheduler.send(id.encode(), LARGE if id.endswith("large") else id.encode(), control(given))
    for number in range(12):
        once = {"id": f"once-{number}", "at": str(RECORDED_AT + 60_000 * number), "target-topic": TARGET, **LABELLED}
        scheduler.send(b"entity", b"%d" % number, [*control(once), ("binary", b"\0\xff")])
    tombstone = {"command": "schedule", "id": "tombstone", "after": "45m", "target-topic": TARGET, "tenant": "other"}
    scheduler.send(b"\xff\0", None, [*control(tombstone), ("nothing", None)])
    refused = {"id": "refused", "after": "80s", "target-topic": MISSING, "tenant": "other"}
    scheduler.send(b"refused", b"", control(refused))


def run_to(scheduler: MemoryScheduler, until: int) -> None:
    """Carry out everything up to an instant."""
    for _ in scheduler.rounds(until):
        pass


def begin_bulk(scheduler: MemoryScheduler) -> None:
    """Begin a bulk command, and stop in the middle of it."""
    scheduler.send(None, None, control({"command": "reschedule", "id": "once-*", "after": "30m"}))
    for _ in range(2):
        partition_of(scheduler).cycle(scheduler.clock.now())


def deliveries(scheduler: MemoryScheduler) -> list[Any]:
    """Return the deliveries as JSON values."""
    return [
        [each.topic, each.partition, text(each.key), text(each.value), [[name, text(value)] for name, value in headers]]
        for each in scheduler.delivered
        for headers in [each.headers]
    ]


def text(value: bytes | None) -> str | None:
    """Return bytes as base64."""
    return None if value is None else b64encode(value).decode()


def bytes_of(text: str | None) -> bytes | None:
    """Decode a result of `text`."""
    return None if text is None else b64decode(text)


def record(folder: Path) -> None:
    """Write the three files."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        scheduler = new_scheduler(RocksStore(copy))
        send_all(scheduler)
        run_to(scheduler, RECORDED_AT)
        begin_bulk(scheduler)
        before = len(scheduler.delivered)
        partition = partition_of(scheduler)
        partition._table.close()
        with tarfile.open(folder / "copy.tar.xz", "w:xz") as archive:
            for file in sorted(copy.iterdir()):
                if not file.name.startswith(("LOG", "LOCK")):
                    archive.add(file, f"copy/{file.name}")
        changelog = scheduler.broker.log((SETTINGS.topics.changelog(scheduler.commands_topic), 0))
        lines = [json.dumps([each.offset, text(each.key), text(each.value)]) for each in changelog]
        (folder / "changelog.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="ascii")
        partition._table = ScheduleTable(RocksStore(copy))
        run_to(scheduler, UNTIL)
        partition._table.close()
    after = [json.dumps(each) for each in deliveries(scheduler)[before:]]
    (folder / "expected.json").write_text("[\n" + ",\n".join(after) + "\n]\n", encoding="ascii")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
