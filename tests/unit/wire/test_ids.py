from __future__ import annotations

from uuid import NAMESPACE_URL, RFC_4122, UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.wire import derived_id, record_id, time_ordered_id

places = st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 9_999), st.integers(0, 2**50))


@given(places)
def test_a_records_id_is_a_uuid_of_version_7_that_holds_its_time(place: tuple[int, int, int]) -> None:
    identity = UUID(record_id(*place))
    assert (identity.version, identity.variant) == (7, RFC_4122)
    assert identity.int >> 80 == place[0]


@given(places, places)
def test_different_records_have_different_ids_in_the_order_of_time_partition_and_offset(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    assert (record_id(*one) < record_id(*other)) == (one < other)
    assert (record_id(*one) == record_id(*other)) == (one == other)


def test_timestamps_that_no_uuid_can_hold_still_give_an_id() -> None:
    assert UUID(time_ordered_id(-1, 0)).int >> 80 == 0
    assert UUID(time_ordered_id(2**62, -1)).version == 7


@given(st.text())
def test_a_derived_id_is_what_every_language_derives(name: str) -> None:
    namespace = uuid5(NAMESPACE_URL, "urn:light-scheduler:schedule-id")
    assert derived_id(name) == derived_id(name.encode()) == str(uuid5(namespace, name))


def test_bytes_that_are_no_text_have_a_derived_id_too() -> None:
    assert UUID(derived_id(b"\xff\x00")).version == 5
