"""The topics of an application, and the reasons for their configurations. Pure: does not ask a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from light_scheduler.model import CHANGELOG_LAG_MS
from light_scheduler.model.topics import karafka_states_topic
from light_scheduler.settings import Settings
from light_scheduler.settings.values import COMPATIBLE_DIALECTS

KIB = 1024
MIB = 1024 * KIB
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS

_LARGEST = "max.message.bytes"
_COMPACTION_LAG = "min.compaction.lag.ms"

CleanupPolicy = Literal["delete", "compact"]


@dataclass(frozen=True)
class TopicConfig:
    """A configuration of a topic, and the reason for its value."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class TopicSpec:
    """The specification of a topic.

    If it `is_of_another` scheduler, it may be compacted, and have that scheduler's limit for records.
    """

    name: str
    purpose: str
    partitions: int
    replication_factor: int
    cleanup_policy: CleanupPolicy
    configs: tuple[TopicConfig, ...]
    is_of_another: bool = False

    @property
    def largest_record(self) -> int | None:
        """Its `max.message.bytes`; None for the broker's default."""
        largest = self.config_values().get(_LARGEST)
        return None if largest is None else int(largest)

    @property
    def compaction_lag_ms(self) -> int:
        """Its `min.compaction.lag.ms`; 0 if compaction may begin immediately."""
        return int(self.config_values().get(_COMPACTION_LAG, 0))

    def config_values(self) -> dict[str, str]:
        """Return the configurations in Kafka's format."""
        return {config.name: config.value for config in self.configs}


def topic_plan(
    settings: Settings, existing: Mapping[str, int] | None = None, lost: Mapping[str, int] | None = None
) -> list[TopicSpec]:
    """Return the topics of an application.

    `existing` maps existing topics to their partition counts. A changelog has as many partitions as its commands topic,
    even if that was created by others: partition n has the state of partition n. So a missing commands topic gets as
    many as its existing changelog, unless `lost` has another number for it.
    """
    counts = existing or {}
    again = partitions_of_changelogs(settings, counts) | dict(lost or {})
    names = settings.topics
    command_bytes = max(10 * MIB, settings.max_payload_bytes + MIB)
    specs = []
    for source in settings.inputs:
        partitions = counts.get(source.name, again.get(source.name, settings.partitions))
        commands = _commands(settings, source.name, partitions, command_bytes)
        specs.append(replace(commands, is_of_another=source.dialect in COMPATIBLE_DIALECTS))
        specs.append(_changelog(settings, names.changelog(source.name), source.name, partitions, command_bytes))
        if source.dialect == "karafka":
            specs.append(_karafka_states(settings, source.name, partitions))
    history = "What happened to schedules: for watching and audit."
    results = "Answers to commands, unless their senders name their own topic."
    specs += [
        _kept_for(settings, names.history, history, 7 * _DAY_MS, "A week to look into what happened."),
        _kept_for(settings, names.results, results, _DAY_MS, "A sender waits for its answer for seconds, not days."),
        _idempotency(settings, names.idempotency),
        _dead_letters(settings, command_bytes),
        _forecast(settings, names.forecast),
        _compacted(settings, names.tenants, "Rules of tenants, and tokens; every worker reads all of it.", 1),
        _compacted(settings, names.delays, "Delay rules; every worker reads all of it.", 1),
        _delay_positions(settings, names.delay_positions),
        _compacted(settings, names.loads, "Which rows `pipeline load` has sent: each task reads all of it.", 1),
    ]
    return specs


def partitions_of_changelogs(settings: Settings, existing: Mapping[str, int]) -> dict[str, int]:
    """Return the missing commands topics whose changelogs exist, with the partition counts of these changelogs."""
    changelogs = {source.name: settings.topics.changelog(source.name) for source in settings.inputs}
    return {
        commands: existing[changelog]
        for commands, changelog in changelogs.items()
        if commands not in existing and changelog in existing
    }


def _commands(settings: Settings, name: str, partitions: int, largest: int) -> TopicSpec:
    retention = _retention(30 * _DAY_MS, "Commands wait here while every worker is down; expired ones are lost.")
    reason = "A payload over the limit still reaches the worker, which answers it with a rejection."
    return _spec(settings, name, "Commands.", partitions, "delete", retention, _largest(largest, reason))


def _changelog(settings: Settings, name: str, commands: str, partitions: int, command_bytes: int) -> TopicSpec:
    return _spec(
        settings,
        name,
        f"The state of {commands}, partition by partition.",
        partitions,
        "compact",
        TopicConfig(
            "delete.retention.ms",
            str(_DAY_MS),
            "A worker's local copy that is younger than this is brought up to date, an older one is rebuilt.",
        ),
        TopicConfig("message.timestamp.type", "LogAppendTime", "Shows workers whose clock differs from the broker's."),
        TopicConfig(
            "segment.bytes", str(64 * MIB), "The newest segment is never compacted: a rebuild reads all of it."
        ),
        TopicConfig("segment.ms", str(_HOUR_MS), "Old records are cleaned up even with little traffic."),
        TopicConfig(
            _COMPACTION_LAG,
            str(CHANGELOG_LAG_MS),
            "`pipeline export` reads beside workers, and finds the last record of each key at one instant.",
        ),
        TopicConfig("min.cleanable.dirty.ratio", "0.2", "A rebuild reads about a quarter more than the live records."),
        _largest(command_bytes + MIB, "The content of a command, and the state of its schedule."),
    )


def _karafka_states(settings: Settings, commands: str, partitions: int) -> TopicSpec:
    purpose = f"How far {commands} is dispatched, for Karafka's Web UI."
    return replace(_compacted(settings, karafka_states_topic(commands), purpose, partitions), is_of_another=True)


def _kept_for(settings: Settings, name: str, purpose: str, retention_ms: int, reason: str) -> TopicSpec:
    return _spec(settings, name, purpose, settings.partitions, "delete", _retention(retention_ms, reason))


def _idempotency(settings: Settings, name: str) -> TopicSpec:
    return _spec(
        settings,
        name,
        "Idempotency keys of HTTP requests, with the answers to their commands.",
        1,
        "delete",
        _retention(2 * _HOUR_MS, "Keys are kept for an hour; a worker that begins to use them reads all there is."),
        TopicConfig("segment.ms", str(10 * _MINUTE_MS), "Only whole segments are deleted."),
        TopicConfig("message.timestamp.type", "LogAppendTime", "All workers agree on how old a key is."),
    )


def _dead_letters(settings: Settings, command_bytes: int) -> TopicSpec:
    return _spec(
        settings,
        settings.topics.dead_letters,
        "Commands that were not understood and firings that could not be delivered, byte for byte.",
        settings.partitions,
        "delete",
        _retention(30 * _DAY_MS, "Time to notice, repair and send again."),
        _largest(command_bytes + 64 * KIB, "The largest command, and the headers that say what was wrong with it."),
    )


def _delay_positions(settings: Settings, name: str) -> TopicSpec:
    return _spec(
        settings,
        name,
        "How far each delay rule has come in each partition of its source.",
        1,
        "compact",
        TopicConfig("segment.bytes", str(4 * MIB), "The newest segment is never compacted, and a new owner reads all."),
        TopicConfig("segment.ms", str(_HOUR_MS), "Old records are cleaned up even with little traffic."),
        TopicConfig("delete.retention.ms", "60000", "Nothing here is deleted; this removes markers of transactions."),
        TopicConfig("min.cleanable.dirty.ratio", "0.1", "A new owner reads little more than the live records."),
    )


def _forecast(settings: Settings, name: str) -> TopicSpec:
    return _spec(
        settings,
        name,
        "How many schedules are due in which minute, or on which day further ahead.",
        settings.partitions,
        "compact",
        TopicConfig(
            "segment.bytes", str(16 * MIB), "The newest segment is never compacted, and a new owner reads all."
        ),
        TopicConfig("segment.ms", str(_HOUR_MS), "Old records are cleaned up even with little traffic."),
        TopicConfig("min.cleanable.dirty.ratio", "0.1", "A new owner reads little more than the live records."),
    )


def _compacted(settings: Settings, name: str, purpose: str, partitions: int) -> TopicSpec:
    return _spec(settings, name, purpose, partitions, "compact")


def _retention(ms: int, reason: str) -> TopicConfig:
    return TopicConfig("retention.ms", str(ms), reason)


def _largest(record_bytes: int, reason: str) -> TopicConfig:
    return TopicConfig(_LARGEST, str(record_bytes), reason)


def _spec(
    settings: Settings, name: str, purpose: str, partitions: int, policy: CleanupPolicy, *configs: TopicConfig
) -> TopicSpec:
    policy_reason = {"delete": "Every record counts.", "compact": "Only the last record of a key counts."}[policy]
    all_configs = [TopicConfig("cleanup.policy", policy, policy_reason), *configs]
    if settings.replication_factor >= 3:
        all_configs.append(
            TopicConfig("min.insync.replicas", "2", "What was acknowledged survives the loss of a node.")
        )
    return TopicSpec(name, purpose, partitions, settings.replication_factor, policy, tuple(all_configs))
