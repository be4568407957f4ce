from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import layout
from light_scheduler.wire.state import identity_of

AT = 1_767_225_600_123
LAST_MS_OF_9999 = 253_402_300_799_999


def entry(due: int, priority: int = 100, arrival: int = 42, id: str = "pöst", tenant: str = "acme") -> Entry:
    return Entry(
        Schedule(tenant, id, 1, Once(due), Target("t"), None, [], 0, 42, due, priority=priority),
        Progress(due, arrival),
    )


# These bytes are on disks: they change only with the version in `table.CHECKPOINT_VERSION`.


def test_a_time_index_key_golden() -> None:
    assert layout.index_key(entry(AT), identity_of(entry(AT))) == bytes.fromhex(
        "74"  # 't'
        "61636d65"
        "00"  # acme
        "01c16dc0"  # minute 29453760
        "007b"  # 123 ms in it
        "64"  # priority 100
        "800000000000002a"  # arrival 42
        "70c3b67374"  # pöst
    )


def test_a_primary_key_golden() -> None:
    assert layout.primary_key("acme", "pöst") == bytes.fromhex("7061636d650070c3b67374")


entries = st.builds(
    entry,
    st.integers(0, LAST_MS_OF_9999),
    st.integers(0, 255),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=4),
    st.sampled_from(["acme", "acme-2", "acme.de", "acmeA", "b"]),
)


@given(entries, entries)
def test_keys_are_ordered_by_tenant_then_due_then_priority_then_arrival(one: Entry, other: Entry) -> None:
    def rank(each: Entry) -> tuple[str, int, int, int, bytes]:
        schedule, progress = each.schedule, each.progress
        return schedule.tenant, progress.due, schedule.priority, progress.arrival, schedule.id.encode()

    assert (layout.index_key(one, identity_of(one)) < layout.index_key(other, identity_of(other))) == (
        rank(one) < rank(other)
    )


@given(entries, st.integers(0, LAST_MS_OF_9999))
def test_a_position_by_time_lies_before_all_that_is_due_from_then_on(each: Entry, at: int) -> None:
    position = layout.index_from(each.schedule.tenant, at)
    assert (position <= layout.index_key(each, identity_of(each))) == (at <= each.progress.due)


@given(entries)
def test_keys_tell_their_due_and_lie_between_the_ends_of_the_index(each: Entry) -> None:
    key = layout.index_key(each, identity_of(each))
    tenant = each.schedule.tenant
    assert (layout.tenant_in(key), layout.due_of(key)) == (tenant, each.progress.due)
    assert layout.identity_in(key) == identity_of(each)
    assert layout.index_from(tenant, 0) <= key < layout.tenant_end(tenant)
    for other in {"acme", "acme-2", "acme.de", "acmeA", "b"} - {tenant}:
        assert not layout.index_from(other, 0) <= key < layout.tenant_end(other)
    assert layout.INDEX_START < key < layout.INDEX_END
    for stranger in (layout.primary_key(tenant, each.schedule.id), layout.CHECKPOINT_KEY):
        assert not layout.INDEX_START <= stranger < layout.INDEX_END
