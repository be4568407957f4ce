"""Marks of loaded rows in a compacted topic, written in the transaction that sends the rows.

    key    the first 16 bytes of the SHA-256 of the marked content
    value  JSON; of a batch of rows {"at": 1767225600000, "rows": 9, "held": false, "by": "5f...", "sent": 8,
           "refused": "IAA="}, see `BatchMark`; of a file see `files`; of a Delta table see `versions`

A compacted topic keeps the last record of each key forever. It has one partition.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import msgspec
import numpy as np
from confluent_kafka import Producer

from light_scheduler.connection.coordinators import TIMEOUT_S
from light_scheduler.pipeline.kafka.fetching import read_range
from light_scheduler.pipeline.kafka.log_ends import LogEnds
from light_scheduler.pipeline.kafka.options import CLIENT_PREFIX, ReadOptions, WriteOptions
from light_scheduler.pipeline.kafka.producing import Sender
from light_scheduler.pipeline.kafka.ranges import OffsetRange
from light_scheduler.pipeline.kafka.silence import SILENT

_KEY_BYTES = 16

T = TypeVar("T", bound=msgspec.Struct)

# A worker process of Spark runs many tasks, each of which needs all marks. It continues reading where the last one
# stopped.
_known: dict[tuple[int, str, str], Marks] = {}


def key_of(*content: Any) -> bytes:
    """Return the key of a mark: a digest of the marked content."""
    return hashlib.sha256(msgspec.msgpack.encode(content, enc_hook=str)).digest()[:_KEY_BYTES]


class BatchMark(msgspec.Struct, frozen=True):
    """A batch of rows that was sent. `at` (UTC epoch ms) is the instant at which its rows were checked.

    `held`: rows whose time had passed by then were not sent. `by` is a digest of the run that wrote the mark and of the
    batch's place in it. `sent` is the number of rows that it sent: a task that Spark runs again reports them again.
    `refused` has a bit for each row, the first one in the highest bit, which is set if no run has sent the row. It is
    empty if all were sent, and older versions did not write it.
    """

    at: int
    rows: int
    held: bool = False
    by: str = ""
    sent: int = 0
    refused: bytes | None = None

    def refusing(self, rows: Collection[int]) -> BatchMark:
        """Return the mark with these rows, counted from 0, as refused."""
        bits = np.zeros(self.rows, bool)
        bits[list(rows)] = True
        return msgspec.structs.replace(self, refused=np.packbits(bits).tobytes() if rows else b"")

    def unsent(self) -> frozenset[int] | None:
        """Return the rows that no run has sent, counted from 0; None: the mark does not tell."""
        if self.refused is None:
            return None
        return frozenset(np.flatnonzero(np.unpackbits(np.frombuffer(self.refused, np.uint8))).tolist())


class Marks:
    """The marks in a topic. `connection` has the cluster's address as options of the Kafka format."""

    def __init__(self, connection: Mapping[str, str], topic: str) -> None:
        self.topic = topic
        self._options = ReadOptions.parse({**connection, "subscribe": topic}, streaming=False)
        level = {f"{CLIENT_PREFIX}isolation.level": "read_uncommitted"}
        self._everything = ReadOptions.parse({**connection, **level, "subscribe": topic}, streaming=False)
        self._client = WriteOptions.parse(connection).client
        self._sender: Sender | None = None
        self._values: dict[bytes, bytes] = {}
        self._topic_id = ""  # id of the topic that they come from
        self._end = 0

    @classmethod
    def known_here(cls, connection: Mapping[str, str], topic: str) -> Marks:
        """Return the marks that this process has read so far."""
        place = os.getpid(), repr(sorted(connection.items())), topic
        if place not in _known:
            _known[place] = cls(connection, topic)
        return _known[place]

    def read_on(self) -> None:
        """Read to the current end of the log, waiting for undecided transactions.

        If the topic was deleted and created again, all marks are forgotten.
        """
        with LogEnds(self._everything) as log:
            (topic_id,), starts, ends = log.ids().values(), log.earliest(), log.latest()
        ((part, end),) = ends.items()
        if topic_id != self._topic_id:
            self._values.clear()
            self._topic_id, self._end = topic_id, 0
        for chunk in read_range(self._options, OffsetRange(*part, max(self._end, starts[part]), end)):
            self._values.update((message.key(), message.value()) for message in chunk)
        self._end = max(self._end, end)

    def get(self, key: bytes, type: type[T]) -> T | None:
        """Return the mark of a key."""
        value = self._values.get(key)
        return None if value is None else msgspec.json.decode(value, type=type)

    def all_of(self, type: type[T]) -> Iterator[T]:
        """Yield all marks of a type, which is recognised by its fields."""
        for value in self._values.values():
            with suppress(msgspec.ValidationError):
                yield msgspec.json.decode(value, type=type)

    def note(self, key: bytes, value: bytes) -> None:
        """Remember a mark that was written by this process."""
        self._values[key] = value

    def write(self, key: bytes, mark: msgspec.Struct) -> None:
        """Write a single mark. Raises KafkaException or TimeoutError."""
        value = msgspec.json.encode(mark)
        # Reused for the next mark: a producer takes half a second to start.
        sender, self._sender = self._sender or Sender(Producer(dict(self._client), logger=SILENT)), None
        sender.send(self.topic, key, value, partition=0)
        sender.finish()
        self._sender = sender  # not reused after a failure
        self.note(key, value)


class MarkingProducer:
    """A transactional producer whose transactions write marks.

    Creating one aborts an open transaction of an earlier producer with this name, and fences that producer. So the
    marks read afterwards are all that it will ever have written.
    """

    def __init__(self, client: Mapping[str, Any], name: str, connection: Mapping[str, str], topic: str) -> None:
        self._producer = Producer({**client, "transactional.id": name}, logger=SILENT)
        self._producer.init_transactions(TIMEOUT_S)
        self._topic = topic
        self.marks = Marks.known_here(connection, topic)
        self.marks.read_on()

    @contextmanager
    def transaction(self, marks: Mapping[bytes, msgspec.Struct]) -> Iterator[Sender]:
        """Commit the records sent in the block together with marks. Abort both if the block raises."""
        values = {key: msgspec.json.encode(mark) for key, mark in marks.items()}
        self._producer.begin_transaction()
        try:
            delivery = Sender(self._producer)
            yield delivery
            delivery.finish()
            # Last, since readers of marks wait for undecided ones.
            for key, value in values.items():
                delivery.send(self._topic, key, value, partition=0)
            delivery.finish()
            self._producer.commit_transaction(TIMEOUT_S)
        except BaseException:
            self._producer.abort_transaction(TIMEOUT_S)
            raise
        for key, value in values.items():
            self.marks.note(key, value)
