"""How many partitions to give to lost commands topics: what is left of them in Kafka, and what the user decides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from light_scheduler.errors import ConfigurationError
from light_scheduler.kafka.compacted import stored_entries
from light_scheduler.kafka.topic_admin import REACH_S, TIMEOUT_S, admin_client, partition_counts, written_partitions
from light_scheduler.kafka.topic_commands import even_partitions_command
from light_scheduler.kafka.topic_plan import partitions_of_changelogs
from light_scheduler.lanes.growing.lost_topic import Doubt, Remains, partitions_of_lost
from light_scheduler.lanes.growing.records import last_partitioning_in
from light_scheduler.settings import Settings
from light_scheduler.wire import dialect_named

OPTION = "commands_partitions"


def partitions_of_lost_topics(settings: Settings, decided: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the partition counts of missing commands topics whose changelogs exist.

    `decided` has the counts that the user has decided on, for topics of which Kafka does not tell. Raises
    ConfigurationError if that is missing or impossible, and BrokerError.
    """
    admin = admin_client(settings.connection)
    counts = partition_counts(admin, settings.connection, REACH_S)
    changelogs = partitions_of_changelogs(settings, counts)
    decided = decided or {}
    for topic in decided:
        if topic not in changelogs:
            raise ConfigurationError(OPTION, f"names {topic}, which is no missing commands topic with a changelog")
    if not changelogs:
        return {}
    tenants = settings.topics.tenants
    entries = asyncio.run(stored_entries(settings.connection, tenants, TIMEOUT_S)) if tenants in counts else {}
    dialects = {source.name: source.dialect for source in settings.inputs}
    return {
        topic: number_of(
            settings,
            topic,
            Remains(
                partitions,
                written_partitions(admin, settings.topics.changelog(topic), partitions),
                last_partitioning_in(entries, topic),
                dialect_named(dialects[topic]).forwards,
            ),
            decided.get(topic),
        )
        for topic, partitions in changelogs.items()
    }


def number_of(settings: Settings, topic: str, remains: Remains, decided: int | None) -> int:
    """Return the partition count of a lost commands topic. Raises ConfigurationError if the user has to decide."""
    found = partitions_of_lost(remains)
    if not isinstance(found, Doubt):
        if decided not in (None, found):
            raise ConfigurationError(OPTION, f"must be {found} for {topic}: its schedules are distributed over these")
        return found
    possible = [number for number in found.numbers if number <= remains.changelog]
    if decided in possible:
        return decided
    changelog = settings.topics.changelog(topic)
    numbers = " or ".join(map(str, found.numbers))
    choices = " or ".join(f"--commands-partitions {topic}={number}" for number in possible)
    raise ConfigurationError(
        OPTION,
        f"must be given for {topic}, which is missing: its schedules in {changelog} may be distributed over {numbers} "
        f"partitions. The changelog has {remains.changelog}; {found.reason}. Decide with {choices}",
    )


def said_of_created_again(settings: Settings, created: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each commands topic that was created again, with its number of partitions."""
    counts = partition_counts(admin_client(settings.connection), settings.connection, REACH_S) if created else {}
    sources = {source.name: source for source in settings.inputs}
    for topic, partitions in created.items():
        changelog = settings.topics.changelog(topic)
        if (there := counts.get(changelog, partitions)) <= partitions:
            yield f"{topic} has {partitions} partitions, as many as its changelog {changelog}."
        else:
            fix = even_partitions_command(settings, sources[topic], partitions, there)
            yield (
                f"{topic} has {partitions} partitions: its schedules are distributed over these. Its changelog "
                f"{changelog} has {there}. To use all of them, start a worker, and run `{fix}`."
            )
