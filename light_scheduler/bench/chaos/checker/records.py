"""Records in the form that the checker reads, and their headers."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

CONTROL = "schedule-"
PROMISE = "chaos-promise"
"""A header that the sender adds to commands that must not be carried out: the outcome that it expects."""

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """A record and its place; `timestamp` is UTC epoch ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


RecordId = tuple[int, int]
"""(partition, offset) of a command."""


def control_of(record: Record) -> dict[str, str | None]:
    """Return the scheduler's headers without their prefix, as text."""
    return {
        name.removeprefix(CONTROL): None if value is None else value.decode(errors="replace")
        for name, value in record.headers
        if name.startswith(CONTROL)
    }


def user_headers(record: Record) -> Headers:
    return [(name, value) for name, value in record.headers if not name.startswith(CONTROL)]


def digest(key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """Return a short digest of key, value and user headers, which distinguishes nulls and order."""
    found = hashlib.blake2b(digest_size=12)
    for part in (key, value, *(part for name, content in headers for part in (name.encode(), content))):
        found.update(b"\0" if part is None else b"\1%d:" % len(part) + part)
    return found.digest()


class Answer(NamedTuple):
    """A result: `at` is when the broker received it (UTC epoch ms)."""

    outcome: str
    version: int | None
    at: int


def answer_of(record: Record) -> tuple[RecordId, Answer]:
    """Read a result record: the command that it answers, and the answer."""
    answer: dict[str, Any] = json.loads(record.value or b"{}")
    return (answer["partition"], answer["offset"]), Answer(answer["outcome"], answer["version"], record.timestamp)


def kafka_partition(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's default partitioner chooses: murmur2, made positive, modulo."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    length = len(key)
    h = (0x9747B28C ^ length) & mask
    for start in range(0, length & ~3, 4):
        k = int.from_bytes(key[start : start + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    rest = key[length & ~3 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    h ^= h >> 15
    return (h & 0x7FFFFFFF) % partitions
