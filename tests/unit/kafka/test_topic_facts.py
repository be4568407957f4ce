"""What a topic's metadata and configuration say of it as a target."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.errors import (
    InvalidTopicError,
    KafkaError,
    LeaderNotAvailableError,
    ListenerNotFound,
    ReplicaNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from light_scheduler.kafka.target_outages import WHOLE_TOPIC
from light_scheduler.kafka.topic_facts import (
    TargetTopic,
    faults_of,
    is_missing,
    is_there,
    refusal_in,
    topic_of,
    unknown,
)
from light_scheduler.model.topic_configuration import TopicConfiguration

UNKNOWN = TopicConfiguration()


def partition(
    number: int = 0, *, leader: int = 1, replicas: int = 3, in_sync: int | None = None, error: int = 0
) -> dict[str, Any]:
    return {
        "partition": number,
        "leader": leader,
        "error_code": error,
        "replicas": list(range(replicas)),
        "isr": list(range(replicas if in_sync is None else in_sync)),
    }


def described(*partitions: dict[str, Any], error: int = 0, **fields: Any) -> dict[str, Any]:
    return {"topic": "t", "error_code": error, "partitions": list(partitions), **fields}


# -- partitions that take nothing for the moment ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "in_sync", "wanted", "fault"),
    [
        pytest.param(3, 3, 2, None, id="all in sync"),
        pytest.param(3, 2, 2, None, id="as many in sync as are wanted"),
        pytest.param(3, 1, 2, "it has 1 in-sync replica; min.insync.replicas is 2", id="one too few"),
        pytest.param(3, 0, 1, "it has 0 in-sync replicas; min.insync.replicas is 1", id="none"),
        pytest.param(1, 1, 2, None, id="one replica of which two are wanted: it is all there is"),
        pytest.param(2, 2, 3, None, id="two replicas of which three are wanted"),
        pytest.param(2, 1, 3, "it has 1 in-sync replica; min.insync.replicas is 2", id="one of two, three wanted"),
        pytest.param(3, 1, None, None, id="no right to read what is wanted: one"),
    ],
)
def test_a_partition_takes_records_with_as_many_replicas_in_sync_as_are_wanted_or_as_it_has(
    replicas: int, in_sync: int, wanted: int | None, fault: str | None
) -> None:
    config = UNKNOWN if wanted is None else TopicConfiguration(min_insync_replicas=wanted)
    faults = faults_of(described(partition(4, replicas=replicas, in_sync=in_sync)), config)
    assert faults == ({} if fault is None else {4: fault})


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"leader": 0}, False),
        ({"leader": -1}, True),
        ({"leader": 1, "error": LeaderNotAvailableError.errno}, True),
        ({"leader": 1, "error": ListenerNotFound.errno}, True),
        ({"leader": 1, "error": ReplicaNotAvailableError.errno}, False),
    ],
)
def test_a_partition_without_a_leader_is_at_fault_and_no_other_is(fields: dict[str, int], fault: bool) -> None:
    faults = faults_of(described(partition(0), partition(1, **fields), partition(2)), UNKNOWN)
    assert faults == ({1: "it has no leader"} if fault else {})


def test_metadata_that_name_no_replicas_find_no_fault() -> None:
    assert faults_of(described({"partition": 0, "leader": 1}), TopicConfiguration(min_insync_replicas=2)) == {}


@pytest.mark.parametrize("error", [LeaderNotAvailableError, UnknownTopicOrPartitionError])
def test_a_topic_whose_metadata_cannot_be_read_is_at_fault_as_a_whole(error: type[KafkaError]) -> None:
    faults = faults_of(described(error=error.errno), UNKNOWN)
    assert faults == {WHOLE_TOPIC: f"its metadata cannot be read: {error.__name__}"}


def test_a_topic_that_is_being_made_has_no_partitions_yet_and_is_at_fault_as_a_whole() -> None:
    assert faults_of(described(), UNKNOWN).keys() == {WHOLE_TOPIC}


# -- topics to which nothing can be written ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        (described(partition()), None),
        (described(error=UnknownTopicOrPartitionError.errno), "topic t does not exist"),
        (described(error=InvalidTopicError.errno), "t is not a legal topic name"),
        (
            described(error=TopicAuthorizationFailedError.errno),
            "the scheduler is not authorised to write to topic t",
        ),
        (described(error=LeaderNotAvailableError.errno), None),
        (described(partition(), is_internal=True), "topic t is internal to Kafka"),
        (described(partition(), is_internal=False), None),
    ],
)
def test_a_topic_is_refused_for_what_does_not_pass_by_itself(given: dict[str, Any], refusal: str | None) -> None:
    assert refusal_in(given) == refusal


@pytest.mark.parametrize(
    ("given", "missing", "there"),
    [
        (described(partition()), False, True),
        (described(), False, False),
        (described(error=UnknownTopicOrPartitionError.errno), True, False),
        (described(error=LeaderNotAvailableError.errno), False, False),
    ],
)
def test_a_topic_that_is_not_there_is_not_always_missing(given: dict[str, Any], missing: bool, there: bool) -> None:
    assert (is_missing(given), is_there(given)) == (missing, there)


# -- what is known of a topic -----------------------------------------------------------------------------------------


def test_without_the_right_to_read_its_configuration_a_topic_has_kafkas_defaults() -> None:
    topic = topic_of(described(partition(0), partition(1)), UNKNOWN, 7.0)
    assert topic == TargetTopic(2, 1_048_588, None, 7.0, leaders=(1, 1))


def test_partitions_without_a_leader_or_enough_replicas_in_sync_are_known_to_be_unavailable() -> None:
    config = TopicConfiguration(min_insync_replicas=2)
    given = described(partition(0), partition(1, leader=-1), partition(2, in_sync=1), partition(3))
    assert topic_of(given, config, 7.0).unavailable == {1, 2}


def test_a_topic_does_with_records_what_its_configuration_says() -> None:
    config = TopicConfiguration("compact", max_message_bytes=9, message_timestamp_type="LogAppendTime")
    topic = topic_of(described(partition()), config, 0.0)
    assert (topic.is_compacted, topic.max_message_bytes, topic.stamps_appends) == (True, 9, True)


@pytest.mark.parametrize(
    ("asked", "alike"), [(0, [0, 2]), (1, [1]), (2, [0, 2]), (3, [3]), (4, [4]), (WHOLE_TOPIC, [WHOLE_TOPIC])]
)
def test_partitions_are_known_by_their_leaders_in_whichever_order_they_are_told(asked: int, alike: list[int]) -> None:
    leaders = {3: 9, 1: 8, 0: 7, 2: 7}
    told = described(*(partition(number, leader=leader) for number, leader in leaders.items()))
    assert topic_of(told, UNKNOWN, 0.0).led_like(asked) == alike


def test_a_topic_of_which_nothing_was_learned_is_not_refused() -> None:
    assert unknown(3.0)[:4] == (1, 1_048_588, None, 3.0)
