"""Records as the checker reads them, and what is in their headers."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

CONTROL = "schedule-"
PROMISE = "chaos-promise"
"""A header of the sender's own: what it expects of a command that is not to be carried out."""

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
    """Return the scheduler's headers less their prefix, as text."""
    return {
        name.removeprefix(CONTROL): None if value is None else value.decode(errors="replace")
        for name, value in record.headers
        if name.startswith(CONTROL)
    }


def user_headers(record: Record) -> Headers:
    return [(name, value) for name, value in record.headers if not name.startswith(CONTROL)]


def digest(key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """Tell contents apart in few bytes: key, value and user headers, nulls and order included."""
    found = hashlib.blake2b(digest_size=12)
    for part in (key, value, *(part for name, content in headers for part in (name.encode(), content))):
        found.update(b"\0" if part is None else b"\1%d:" % len(part) + part)
    return found.digest()


class Answer(NamedTuple):
    """A result: `at` is when the broker took it (UTC epoch ms)."""

    outcome: str
    version: int | None
    at: int


def answer_of(record: Record) -> tuple[RecordId, Answer]:
    """Read a result record: which command it answers, and how."""
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
