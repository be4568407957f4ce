"""What the configurations of a topic mean, as a broker tells them."""

from __future__ import annotations

import pytest

from light_scheduler.model.topic_configuration import CONFIGURATION_NAMES, TopicConfiguration, configuration_of

DAY_MS = 86_400_000


def test_what_matters_is_read_by_kafkas_names_and_the_rest_is_passed_over() -> None:
    told = {
        "cleanup.policy": "compact",
        "delete.retention.ms": "1",
        "max.message.bytes": "2",
        "message.timestamp.type": "LogAppendTime",
        "min.compaction.lag.ms": "3",
        "min.insync.replicas": "4",
        "retention.ms": "-1",
    }
    read = configuration_of(told | {"segment.ms": "5"})
    assert read == TopicConfiguration("compact", 1, 2, "LogAppendTime", 3, 4, -1)
    assert set(CONFIGURATION_NAMES) == set(told)


def test_what_a_broker_does_not_tell_has_kafkas_default() -> None:
    assert configuration_of({"retention.ms": None}) == TopicConfiguration(
        "delete", DAY_MS, 1_048_588, "CreateTime", 0, 1, 7 * DAY_MS
    )


@pytest.mark.parametrize(
    ("policy", "is_compacted", "expires_records"),
    [
        ("delete", False, True),
        ("compact", True, False),
        ("compact,delete", True, True),
        ("delete, compact", True, True),
        ("", False, False),
    ],
)
def test_a_topic_can_be_compacted_and_delete_what_is_old(
    policy: str, is_compacted: bool, expires_records: bool
) -> None:
    read = configuration_of({"cleanup.policy": policy})
    assert (read.is_compacted, read.expires_records) == (is_compacted, expires_records)


def test_only_a_topic_of_append_times_replaces_timestamps() -> None:
    assert configuration_of({"message.timestamp.type": "LogAppendTime"}).stamps_appends
    assert not configuration_of({"message.timestamp.type": "CreateTime"}).stamps_appends
