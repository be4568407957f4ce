"""Records of a transaction that topics refuse, and partitions that do not answer in time; and whose they are."""

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

# The broker's word on these records, as opposed to on its own health. It has no error class of its own for a record
# that a topic's rules forbid (a null key in a compacted topic): that one is UnknownError here.
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
"""Errors of a partition or the client that concern the whole transaction."""

PASSING_REFUSALS = 3
"""How often a partition that refuses without saying why is given time, before the records are to blame."""

UserRecord = Entry | Result
"""Content of a record for a user's topic: a pending schedule's firing, or a command's answer."""


class RecordTooLargeError(Exception):
    """A record is larger than its topic takes; the batches are as they were."""

    def __init__(self, topic: str, size: int, limit: int) -> None:
        super().__init__(f"the record has {size} bytes; topic {topic} takes at most {limit}")


class RecordsRefusedError(Exception):
    """A topic refused a batch.

    `culprits` are the origins of its records; with more than one, which of them it was is open. `beside` is what other
    partitions refused of the same transaction.
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
        """This and those beside it, as far as they are about users' records."""
        return [refused for refused in (self, *self.beside) if refused.culprits]

    @property
    def is_of_topic(self) -> bool:
        """Whether the topic takes nothing at all."""
        return isinstance(self.cause, _WHOLE_TOPIC)

    @property
    def is_certain(self) -> bool:
        """Whether every culprit is one. All records of a cycle have the same timestamp: a bad one is everybody's."""
        is_shared = isinstance(self.cause, InvalidTimestampError) and bool(self.culprits)
        return len(self.culprits) == 1 or self.is_of_topic or is_shared

    @property
    def may_pass(self) -> bool:
        """Whether the same records may be taken a moment later: the error says nothing of records."""
        return not isinstance(self.cause, _OF_RECORDS)


class TargetsStalledError(Exception):
    """Partitions of users' topics did not answer in time; everything else of the transaction may be well.

    `places` are those that firings go to, `of_answers` those of answers only.
    """

    def __init__(self, places: list[tuple[str, int]], of_answers: list[tuple[str, int]], seconds: float) -> None:
        stalled = [*places, *of_answers]
        named = ", ".join(f"{topic}-{partition}" for topic, partition in stalled[:5])
        super().__init__(f"no answer for {seconds:g} s from {named}{', ...' if len(stalled) > 5 else ''}")
        self.places = places
        self.of_answers = of_answers
