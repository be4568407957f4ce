"""When delayed records are due, how many go at once, and where they go."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine.delays import due_head, due_of, retention_problem, target_partition, timestamp_of
from light_scheduler.model import DelayRule
from light_scheduler.model.topic_configuration import TopicConfiguration
from light_scheduler.wire import partition_for

HOUR = 3_600_000


class Record(NamedTuple):
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None


def test_a_record_is_due_its_delay_after_its_timestamp_and_carries_that_instant_on() -> None:
    assert due_of(1_000, 500) == 1_500
    assert timestamp_of(1_000, 500, now=9_999) == 1_500


def test_a_record_without_a_timestamp_is_due_at_once_and_gets_the_time_of_forwarding() -> None:
    assert due_of(-1, 500) <= 0
    assert timestamp_of(-1, 500, now=9_999) == 9_999


@given(st.integers(0, 2**42), st.lists(st.integers(1, 10**10), min_size=1, max_size=5), st.integers(0, 10**9))
def test_the_delays_of_a_chain_add_up_however_late_each_hop_is(start: int, delays: list[int], late: int) -> None:
    timestamp = start
    for delay in delays:
        timestamp = timestamp_of(timestamp, delay, now=due_of(timestamp, delay) + late)
    assert timestamp == start + sum(delays)


@given(st.lists(st.integers(0, 100)), st.integers(0, 100), st.integers(0, 150), st.integers(1, 20))
def test_only_the_head_that_is_due_goes_and_never_too_much(
    timestamps: list[int], delay: int, now: int, most: int
) -> None:
    records = [Record(timestamp, b"k", b"v") for timestamp in timestamps]
    count = due_head(records, delay, now, most, 10)
    assert all(due_of(record.timestamp, delay) <= now for record in records[:count])
    assert count <= min(most, 5)
    if count < min(most, 5, len(records)):
        assert due_of(records[count].timestamp, delay) > now


def test_a_record_larger_than_a_transaction_goes_alone() -> None:
    assert due_head([Record(0, None, b"x" * 100), Record(0)], 1, 10, most=5, most_bytes=50) == 1


class TestPartitions:
    @pytest.mark.parametrize("target_partitions", [4, 5, 400])
    def test_the_number_is_kept_if_the_target_has_as_many(self, target_partitions: int) -> None:
        assert target_partition(b"key", 3, 4, target_partitions) == 3

    def test_else_the_key_decides(self) -> None:
        assert target_partition(b"key", 3, 4, 3) == partition_for(b"key", 3)

    def test_without_a_key_all_of_a_partition_go_to_one(self) -> None:
        assert [target_partition(None, partition, 4, 3) for partition in range(4)] == [0, 1, 2, 0]


class TestRetention:
    rule = DelayRule("one", "a", HOUR, "b")

    @pytest.mark.parametrize(
        "config",
        [
            TopicConfiguration(retention_ms=HOUR + 1),
            TopicConfiguration(retention_ms=-1),
            TopicConfiguration("compact", retention_ms=1, min_compaction_lag_ms=HOUR + 1),
        ],
    )
    def test_a_topic_that_keeps_records_for_longer_is_fine(self, config: TopicConfiguration) -> None:
        assert retention_problem(self.rule, config) is None

    def test_a_topic_that_keeps_records_for_no_longer_than_the_delay_is_told_of(self) -> None:
        problem = retention_problem(self.rule, TopicConfiguration(retention_ms=HOUR))
        assert problem == (
            "topic a keeps records for 1h, and rule one needs them for 1h: raise its retention.ms well above that"
        )

    @pytest.mark.parametrize("policy", ["compact", "compact,delete"])
    def test_a_compacted_topic_is_told_of(self, policy: str) -> None:
        config = TopicConfiguration(policy, retention_ms=-1)
        assert "is compacted" in (retention_problem(self.rule, config) or "")
