"""No two applications share a name, however their ids and topics are made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.errors import ConfigurationError
from light_scheduler.model import TopicNames
from light_scheduler.settings import load_settings

parts = st.lists(
    st.sampled_from(["a", "b", "orders", "eu", "commands", "schedules-changelog", "lanes", "delays", "0", "1", "6"]),
    min_size=1,
    max_size=4,
).map("-".join)


@given(parts, parts, parts, parts, st.integers(0, 11), st.integers(0, 11))
def test_names_tell_applications_and_their_topics_apart(
    app: str, topic: str, other_app: str, other_topic: str, partition: int, other_partition: int
) -> None:
    names, others = TopicNames(app), TopicNames(other_app)
    is_same = (app, topic) == (other_app, other_topic)
    assert (names.changelog(topic) == others.changelog(other_topic)) == is_same
    is_same = is_same and partition == other_partition
    ids = names.transactional_id(topic, partition), others.transactional_id(other_topic, other_partition)
    assert (ids[0] == ids[1]) == is_same


def test_the_pairs_that_would_meet_if_names_were_just_joined_do_not() -> None:
    assert TopicNames("orders").changelog("eu") != TopicNames("orders-eu").changelog("orders-eu-commands")
    assert TopicNames("a").transactional_id("b-c", 0) != TopicNames("a-b").transactional_id("c", 0)


def test_the_group_of_delay_rules_is_nobodys_group_of_workers() -> None:
    assert TopicNames("orders").delay_group == "orders-delays/sources"
    with pytest.raises(ConfigurationError):
        load_settings({"app_id": TopicNames("orders").delay_group}, environment={})


def test_the_names_of_a_default_installation_are_as_they_always_were() -> None:
    names = TopicNames("light-scheduler")
    assert names.changelog(names.commands) == "light-scheduler-schedules-changelog"
    assert names.transactional_id(names.commands, 3) == "light-scheduler-light-scheduler-commands-3"
