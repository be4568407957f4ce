"""Errors for records that topics refuse and for partitions that do not answer in time, with the affected content."""

from __future__ import annotations

from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownError,
)

from light_scheduler.model import Entry, Result

# Errors about the records, and not about the broker's health. aiokafka has no class for a record that a topic's rules
# forbid (a null key in a compacted topic), so that is UnknownError here.
REFUSED = (
    InvalidTimestampError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownError,
)
_WHOLE_TOPIC = (InvalidTopicError, TopicAuthorizationFailedError)
_OF_RECORDS = tuple(set(REFUSED) - {UnknownError})

OF_PRODUCER = (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)
"""Errors from a partition or the client that affect the whole transaction."""

PASSING_REFUSALS = 3
"""Number of refusals without a reason that are retried before the records are blamed."""

UserRecord = Entry | Result
"""Content of a record for a user's topic: a pending schedule's firing, or a command's result."""


class RecordTooLargeError(Exception):
    """A record is too large for its topic. The batches were not changed."""

    def __init__(self, topic: str, size: int, limit: int) -> None:
        super().__init__(f"the record has {size} bytes; topic {topic} takes at most {limit}")


class RecordsRefusedError(Exception):
    """A topic refused a batch.

    `culprits` are the origins of its records. If there are several, it is unknown which one was refused. `beside` has
    the refusals of other partitions in the same transaction.
    """

    def __init__(self, topic: str, cause: KafkaError, culprits: list[UserRecord], partition: int = -1) -> None:
        super().__init__(f"topic {topic} refused {len(culprits)} records: {cause!r}")
        self.topic = topic
        self.place = topic, partition
        self.cause = cause
        self.culprits = culprits
        self.beside: list[RecordsRefusedError] = []

    @property
    def of_users(self) -> list[RecordsRefusedError]:
        """This refusal and those beside it, if they concern users' records."""
        return [refused for refused in (self, *self.beside) if refused.culprits]

    @property
    def is_of_topic(self) -> bool:
        """Whether the topic refuses all records."""
        return isinstance(self.cause, _WHOLE_TOPIC)

    @property
    def is_certain(self) -> bool:
        """Whether all culprits are to blame. All records of a cycle share the timestamp, so a bad one affects all."""
        is_shared = isinstance(self.cause, InvalidTimestampError) and bool(self.culprits)
        return len(self.culprits) == 1 or self.is_of_topic or is_shared

    @property
    def may_pass(self) -> bool:
        """Whether the same records may be accepted later, since the error is not about records."""
        return not isinstance(self.cause, _OF_RECORDS)


class TargetsStalledError(Exception):
    """Partitions that can be left out did not answer in time. The rest of the transaction may be fine.

    `places` are partitions with firings or forwarded commands, `of_answers` partitions with results only.
    """

    def __init__(self, places: list[tuple[str, int]], of_answers: list[tuple[str, int]], seconds: float) -> None:
        stalled = [*places, *of_answers]
        named = ", ".join(f"{topic}-{partition}" for topic, partition in stalled[:5])
        super().__init__(f"no answer for {seconds:g} s from {named}{', ...' if len(stalled) > 5 else ''}")
        self.places = places
        self.of_answers = of_answers
