"""Delay rules and their positions as records of compacted topics.

    rules      name                    -> {"source": "a", "delay": 5000, "target": "b"}; null: the rule was removed
    positions  name/source/partition   -> {"offset": 42, "topic_id": "..."}

`delay` is in ms; `offset` is the offset of the next record to forward; `topic_id` distinguishes a topic from a later
one with the same name.
"""

from __future__ import annotations

import msgspec

from light_scheduler.durations import format_duration
from light_scheduler.errors import FormatError
from light_scheduler.model.delay import DelayRule, RuleError, parse_rule


class _StoredRule(msgspec.Struct):
    source: str
    delay: int
    target: str


class DelayPosition(msgspec.Struct, frozen=True):
    """The position of a rule in a partition of its source."""

    offset: int
    topic_id: str


_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_RULES = msgspec.json.Decoder(_StoredRule)
_POSITIONS = msgspec.json.Decoder(DelayPosition)


def encode_rule(rule: DelayRule) -> tuple[bytes, bytes]:
    """Return the key and the value of a rule's record."""
    return rule.name.encode(), msgspec.json.encode(_StoredRule(rule.source, rule.delay, rule.target))


def decode_rule(key: bytes | None, value: bytes | None) -> tuple[str, DelayRule | None]:
    """Return a rule's name and the rule, or None if it was removed. Raises FormatError."""
    try:
        name = (key or b"").decode()
        if value is None:
            return name, None
        stored = _RULES.decode(value)
        return name, parse_rule(name, stored.source, format_duration(stored.delay), stored.target)
    except (*_UNREADABLE, RuleError) as error:
        raise FormatError(f"not a delay rule: {error}") from error


def position_key(rule: str, source: str, partition: int) -> bytes:
    """Return the key of a rule's position. None of its parts can contain a slash."""
    return f"{rule}/{source}/{partition}".encode()


def encode_position(position: DelayPosition) -> bytes:
    return msgspec.json.encode(position)


def decode_position(value: bytes) -> DelayPosition:
    """Decode a position. Raises FormatError."""
    try:
        return _POSITIONS.decode(value)
    except _UNREADABLE as error:
        raise FormatError(f"not a delay position: {error}") from error
