"""Whatever happens, a table is what a dict would be, and so is its changelog."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import AT, DISKS, MUCH, Tables, by_due, by_id, by_tenant, entry, index_key, key_of, put
from support.tries import tries

from light_scheduler.model import (
    Entry,
)
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable, layout
from light_scheduler.wire.state import (
    POSITION_KEY,
    encode_entry,
    encode_position,
    identity,
    identity_of,
)

replace = msgspec.structs.replace


@dataclass(frozen=True)
class Step:
    """One cycle: commands, then perhaps a scan; and whether it is applied, aborted, or committed but not applied."""

    commands: list[tuple[tuple[str, str], int | None, int]] = field(default_factory=list)
    """Name, due (None: cancel), priority."""
    advance: int = 0
    limit: int = 5
    end: str = "applied"


Name = tuple[str, str]
NAMES = [("acme", id) for id in ["a", "a/b", "b", "ö", "öö", "zzz"]] + [("acme-2", "a"), ("acme-2", "b"), ("z", "b")]
steps = st.builds(
    Step,
    st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.integers(-2, 6), st.sampled_from([0, 100])), max_size=4),
    st.integers(0, 3),
    st.sampled_from([1, 2, 5, 100]),
    st.sampled_from(["applied", "applied", "applied", "aborted", "crashed", "reopened"]),
)
UNIT = 45_000  # so that minutes change within a few steps


@pytest.mark.parametrize("disk", DISKS)
@settings(max_examples=tries(60))
@given(history=st.lists(steps, max_size=12))
def test_whatever_happens_the_table_is_what_a_dict_would_be_and_so_is_its_changelog(
    disk: type[Any], history: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(disk(Path(folder)))
        model: dict[Name, Entry] = {}
        log: list[tuple[bytes, bytes | None]] = []
        now, offset = AT, 0

        for step in history:
            now += step.advance * UNIT
            overlay, after = tables.overlay(), dict(model)
            records: list[tuple[bytes, bytes | None]] = []
            for name, due, priority in step.commands:
                offset += 1
                tenant, id = name
                assert overlay.get(identity(*name)) == after.get(name)
                if due is None:
                    overlay.remove(identity(*name))
                    after.pop(name, None)
                    records.append((key_of(*name), None))
                else:
                    after[name] = entry(id, now + due * UNIT, tenant=tenant, priority=priority, arrival=offset)
                    put(overlay, after[name])
                    records.append((key_of(*name), encode_entry(after[name])))
            scan = overlay.due(now, step.limit, MUCH)
            due_now = sorted((e for e in after.values() if e.progress.due <= now), key=layout.order_of)
            assert scan.entries == sorted(scan.entries, key=layout.order_of)
            assert len(scan.entries) == min(step.limit, len(due_now))
            for tenant, taken in by_tenant(scan).items():
                of_tenant = [each for each in due_now if each.schedule.tenant == tenant]
                assert taken == of_tenant[: len(taken)]
                assert scan.cut.get(tenant) == (taken[-1] if len(taken) < len(of_tenant) else None)
            for each in scan.entries:
                overlay.remove(identity_of(each))
                del after[each.schedule.tenant, each.schedule.id]
                records.append((key_of(each.schedule.tenant, each.schedule.id), None))
            assert scan.next_due == min((each.progress.due for each in after.values()), default=None)
            if step.end == "aborted":
                continue
            overlay.position = offset
            model = after
            log += [*records, (POSITION_KEY, encode_position(offset))]
            if step.end == "crashed":  # committed, but the write to the table was not reached
                replay(tables.reopen(), log)
            else:
                overlay.apply(changelog_offset=len(log), complete_at=now)
                if step.end == "reopened":
                    tables.reopen()

        assert contents(tables.table) == sorted(model.values(), key=index_key)
        assert tables.table.pending == len(model)
        compacted = list({key: (key, value) for key, value in log}.values())
        for records in (log, log * 2, compacted, compacted[::-1]):
            rebuilt = ScheduleTable(MemoryStore())
            replay(rebuilt, records)
            assert contents(rebuilt) == contents(tables.table)
            assert rebuilt.pending == tables.table.pending
            assert rebuilt.checkpoint.position == (offset_of(log) if log else 0)
        tables.table.close()


def replay(table: ScheduleTable, log: list[tuple[bytes, bytes | None]]) -> None:
    """Bring a table up to date from the offset that it has, three records at a time."""
    while (start := table.checkpoint.changelog_offset) < len(log):
        overlay = Overlay(table)
        for key, value in log[start : start + 3]:
            overlay.replay(key, value)
        overlay.apply(changelog_offset=min(start + 3, len(log)), complete_at=AT)


def contents(table: ScheduleTable) -> list[Entry]:
    found = []
    for tenant in sorted({tenant for tenant, _ in NAMES}):
        of_tenant = [each for _, each in by_due(table, tenant)]
        assert sorted(of_tenant, key=lambda each: each.schedule.id.encode()) == list(by_id(table, tenant))
        found += of_tenant
    return found


def offset_of(log: list[tuple[bytes, bytes | None]]) -> int:
    return int.from_bytes(next(value for key, value in reversed(log) if key == POSITION_KEY and value)[1:])
