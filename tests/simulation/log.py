"""The log of a partition: records, transactions that are open, committed or aborted, and what can be seen of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

if TYPE_CHECKING:
    from .clients import Clients


POISON = b"poison"
"""A value that the broker refuses, although nothing told so beforehand."""

MAX_BATCH_BYTES = 1_048_588
"""What a partition takes at once; more of it is refused."""

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that no producer may write to: the coordinator refuses to make them part of a transaction."""

Place = tuple[str, int]
"""(topic, partition)."""


class Record(NamedTuple):
    """A record in a log, with the names that aiokafka's records have; `timestamp` is UTC epoch ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class State(Enum):
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(eq=False)
class Transaction:
    """One transaction. `decided_at` (s) is when its outcome was, `backlog_end` what its owner found on taking over."""

    transactional_id: str
    epoch: int
    backlog_end: dict[Place, int]
    state: State = State.OPEN
    decided_at: float = 0.0
    places: set[Place] = field(default_factory=set)
    late: set[Place] = field(default_factory=set)
    """Where its marker is not written before the id is free again."""
    dropped: set[Place] = field(default_factory=set)
    """Where its marker is not written at all, although the id is free."""
    records: list[Record] = field(default_factory=list)
    group_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    broken: KafkaError | None = None
    """What its producer fails with from now on, whatever it asks for; the error does not say what it is about."""
    owner: Clients | None = None
    """Whose it is: each lane has clients of its own."""

    @property
    def clock_ahead(self) -> int:
        """By how much (ms) its owner's clock is ahead of the brokers'."""
        return 0 if self.owner is None else self.owner.node.clock_ahead


class Log:
    """One partition. `end` is its high watermark."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[Transaction | None, Record]] = {}  # neither markers nor what was compacted
        self.end = 0
        self.open: dict[Transaction, int] = {}  # transaction -> its first offset here
        self._cleaned_at: dict[int, int] = {}  # tombstone -> when what it supersedes was removed (ms)

    @property
    def last_stable(self) -> int:
        return min(self.open.values(), default=self.end)

    def append(self, place: Place, transaction: Transaction | None, record: Any, timestamp: int) -> Record:
        if transaction is not None:
            self.open.setdefault(transaction, self.end)
        kept = Record(*place, self.end, timestamp, record.key, record.value, list(record.headers))
        self.entries[self.end] = (transaction, kept)
        self.end += 1
        return kept

    def mark(self, transaction: Transaction) -> None:
        """Write the marker that ends a transaction, and with it what else its producer has open here."""
        ended = [each for each in self.open if each.transactional_id == transaction.transactional_id]
        for each in ended:
            begin = self.open.pop(each)
            if each is not transaction:
                self._decide(each, transaction, begin)
        self.end += bool(ended)

    def _decide(self, former: Transaction, transaction: Transaction, begin: int) -> None:
        for offset in range(begin, self.end):
            owner, record = self.entries.get(offset, (None, None))
            if owner is former and record is not None:
                self.entries[offset] = (transaction, record)

    def committed(self, start: int, end: int) -> list[Record]:
        """Return what a read_committed reader sees between two offsets."""
        visible = []
        for offset in range(start, min(end, self.last_stable)):
            entry = self.entries.get(offset)
            if entry is not None and (entry[0] is None or entry[0].state is State.COMMITTED):
                visible.append(entry[1])
        return visible

    def compact(self, now: int, tombstones_kept: int) -> None:
        """Keep the last committed record of each key, at an instant (ms).

        Tombstones are kept for so long (ms) after what they supersede was removed: who has read that can read them.
        """
        stable = self.last_stable
        last = {record.key: record.offset for record in self.committed(0, stable)}
        for offset in [offset for offset in self.entries if offset < stable]:
            _, record = self.entries[offset]
            superseded = last.get(record.key) != offset
            if superseded or (
                record.value is None and now - self._cleaned_at.setdefault(offset, now) > tombstones_kept
            ):
                del self.entries[offset]
