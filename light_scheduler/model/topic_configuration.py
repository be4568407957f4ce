"""The topic configurations that the scheduler uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_DAY_MS = 86_400_000


class TopicConfiguration(NamedTuple):
    """A topic's effective configuration: Kafka's names with underscores for dots, Kafka's defaults if not reported.

    Times are in ms, sizes in bytes. A `retention_ms` of -1 means no limit.
    """

    cleanup_policy: str = "delete"
    delete_retention_ms: int = _DAY_MS
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_ms: int = 7 * _DAY_MS

    @property
    def is_compacted(self) -> bool:
        return "compact" in self._policies

    @property
    def expires_records(self) -> bool:
        return "delete" in self._policies

    @property
    def stamps_appends(self) -> bool:
        """Whether the broker replaces timestamps with the time of its own clock."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def _policies(self) -> set[str]:
        return {policy.strip() for policy in self.cleanup_policy.split(",")}


_NAMES = {field: field.replace("_", ".") for field in TopicConfiguration._fields}
_KINDS = {field: type(default) for field, default in TopicConfiguration._field_defaults.items()}
CONFIGURATION_NAMES = tuple(_NAMES.values())
"""Names of the configurations to request from a broker."""


def configuration_of(entries: Mapping[str, str | None]) -> TopicConfiguration:
    """Parse configurations reported by a broker, by Kafka's names. Ignores those that are not used."""
    given = {field: entries.get(name) for field, name in _NAMES.items()}
    return TopicConfiguration(**{field: _KINDS[field](value) for field, value in given.items() if value is not None})
