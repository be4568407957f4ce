"""What the tenants topic says of the number of partitions."""

from __future__ import annotations

from light_scheduler.access.records import new_peer_secret_record
from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.lanes.growing.records import (
    VALUE,
    TopicIncarnation,
    last_partitioning_in,
    partitioning_in,
    partitions_key,
    stage_key,
)
from light_scheduler.model.partitioning import Partitioning

TOPIC = TopicIncarnation("app-commands", "a/b+c")


def entries(*keys: bytes) -> dict[bytes, bytes]:
    return dict.fromkeys(keys, VALUE)


def settled(partitions: int) -> list[bytes]:
    return [stage_key(TOPIC, partitions, Stage.SETTLED, number) for number in range(partitions)]


def test_nothing_is_known_of_a_topic_that_no_worker_has_noted() -> None:
    other = TopicIncarnation("app-commands", "another")
    assert partitioning_in(entries(partitions_key(other, 4), b"token/x"), TOPIC) is None


def test_the_first_number_holds_and_the_next_one_moves_schedules() -> None:
    key, secret = new_peer_secret_record()
    known = entries(partitions_key(TOPIC, 4))
    assert partitioning_in(known, TOPIC) == Partitioning(4)
    grown = known | entries(partitions_key(TOPIC, 12), stage_key(TOPIC, 12, Stage.RUNNING, 7)) | {key: secret}
    partitioning = partitioning_in(grown, TOPIC)
    assert partitioning is not None
    assert (partitioning.partitions, partitioning.former, partitioning.running) == (12, 4, frozenset({7}))
    assert not partitioning.is_settled
    assert not partitioning.all_run
    assert partitioning.secret
    assert not partitioning.all_follow
    partitioning = partitioning_in(grown | entries(stage_key(TOPIC, 12, Stage.FOLLOWING, 7)), TOPIC)
    assert partitioning is not None
    assert partitioning.all_follow


def test_a_number_counts_when_nothing_moves_any_more_since_the_one_before() -> None:
    known = entries(partitions_key(TOPIC, 2), partitions_key(TOPIC, 3), partitions_key(TOPIC, 6))
    before, after = partitioning_in(known, TOPIC), partitioning_in(known | entries(*settled(3)), TOPIC)
    assert before is not None
    assert (before.partitions, before.former) == (3, 2)
    assert after is not None
    assert (after.partitions, after.former) == (6, 3)


def test_no_partitions_count_for_nothing() -> None:
    """Stored of a topic whose changelog was missing."""
    assert partitioning_in(entries(partitions_key(TOPIC, 0)), TOPIC) is None
    assert partitioning_in(entries(partitions_key(TOPIC, 0), partitions_key(TOPIC, 4)), TOPIC) == Partitioning(4)


def test_a_smaller_number_and_what_cannot_be_read_count_for_nothing() -> None:
    prefix = partitions_key(TOPIC, 4)
    known = entries(prefix, partitions_key(TOPIC, 2), prefix + b"/running/x", prefix + b"/settled", prefix + b"x")
    assert partitioning_in(known, TOPIC) == Partitioning(4)


def test_the_last_topic_of_a_name_that_had_a_partitioning_is_found_whatever_its_id() -> None:
    first, last = TOPIC, TopicIncarnation("app-commands", "n/2/m+q")
    other = TopicIncarnation("app-commands-2", "id")
    known = entries(partitions_key(first, 4), partitions_key(last, 4), partitions_key(last, 12), *settled(4))
    known |= entries(*(stage_key(last, 12, Stage.RUNNING, number) for number in range(12)), partitions_key(other, 7))
    found = last_partitioning_in(known, "app-commands")
    assert found is not None
    assert (found.partitions, found.former, len(found.running), found.is_settled) == (12, 4, 12, False)
    never_used = entries(partitions_key(TopicIncarnation("app-commands", "new"), 0))
    assert last_partitioning_in(known | never_used, "app-commands") == found
    assert last_partitioning_in(known, "app") is None
