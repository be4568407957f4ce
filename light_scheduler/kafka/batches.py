"""The record batches of a transaction. They are built before sending, so that the hot path needs no call per record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import BrokerResponseError
from aiokafka.producer.message_accumulator import BatchBuilder

from light_scheduler.model import Entry, Headers

from .quiet_producer import retrieve
from .refusals import OF_PRODUCER, REFUSED, RecordsRefusedError, RecordTooLargeError, TargetsStalledError, UserRecord

MAX_BATCH_BYTES = 900_000
NO_HEADERS: Headers = []
_BATCH_OVERHEAD = 61
"""Bytes of a batch before its records: Kafka's record batch header, version 2."""


class _Builder(BatchBuilder):  # type: ignore[misc]  # aiokafka is not typed
    """aiokafka's builder without its overhead per record for serializers and single sends."""

    def __init__(self, batch_size: int) -> None:
        super().__init__(batch_size, 0, is_transactional=1)
        self.write = self._builder.append

    def put(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> Any:
        """Add a record and return its metadata; None if it does not fit."""
        metadata = self.write(self._relative_offset, timestamp, key, value, headers)
        if metadata is not None:
            self._relative_offset += 1
        return metadata

    def build(self) -> bytes:
        """Return the batch in a broker's storage format."""
        return bytes(self._build())

    def _build(self) -> Any:
        self.write = None  # otherwise, the records would be in memory twice
        return super()._build()


def size_alone(timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return the size (bytes) of a batch with only this record, which a topic's limit applies to."""
    return int(_Builder(MAX_BATCH_BYTES).put(timestamp, key, value, headers).size) + _BATCH_OVERHEAD


class _Batch(NamedTuple):
    builder: _Builder
    origins: list[UserRecord]


LOG_APPEND_TIME = 1
"""Kafka's number for this timestamp type."""


class RecordBatches:
    """Collects records by topic partition; `send` passes them to the producer.

    Topics in `one_by_one` get a batch for each record, so that a refusal identifies its record. `limit_of` returns the
    largest batch (bytes) that a topic accepts. Partitions of topics in `can_wait` get no more time than users': their
    records can be sent in a later transaction. `timestamp` (UTC epoch ms) applies to records added later. `appended_at`
    is the broker's time (UTC epoch ms) of the last batch for a topic with log append time. `written` has what each
    partition has acknowledged so far.
    """

    def __init__(
        self,
        timestamp: int,
        one_by_one: Collection[str] = (),
        limit_of: Callable[[str], int] = lambda _: MAX_BATCH_BYTES,
        can_wait: Collection[str] = (),
    ) -> None:
        self.timestamp = timestamp
        self._can_wait = can_wait
        self._limit_of = limit_of
        self.appended_at: int | None = None
        self.written: dict[tuple[str, int], Written] = {}
        self._one_by_one = one_by_one
        self._open: dict[tuple[str, int], _Batch] = {}
        self._full: list[tuple[tuple[str, int], _Batch]] = []

    def add(
        self,
        target: tuple[str, int],
        key: bytes | None,
        value: bytes | None,
        headers: Headers = NO_HEADERS,
        *,
        limit: int | None = None,
        origin: UserRecord | None = None,
    ) -> None:
        """Add a record for a (topic, partition). `limit` is its largest batch (bytes), by default from `limit_of`.

        `origin` is the content of a record for a user's topic. Raises RecordTooLargeError, and then changes nothing.
        """
        batch = self._open.get(target)
        if batch is not None:
            builder, origins = batch
            # This is `put` inlined.
            if builder.write(builder._relative_offset, self.timestamp, key, value, headers) is not None:
                builder._relative_offset += 1
                if origin is not None:
                    origins.append(origin)
                return
        limit = self._limit_of(target[0]) if limit is None else limit
        builder = self._first_of(target[0], limit, key, value, headers)
        if batch is not None:
            self._full.append((target, batch))
        batch = _Batch(builder, [] if origin is None else [origin])
        if target[0] in self._one_by_one:
            self._full.append((target, batch))
        else:
            self._open[target] = batch

    def check(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Raise RecordTooLargeError if a record is too large for a topic."""
        self._first_of(topic, self._limit_of(topic), key, value, headers)

    @property
    def places(self) -> list[tuple[str, int]]:
        """The partitions with records."""
        return list(dict.fromkeys([*(target for target, _ in self._full), *self._open]))

    def by_place(self) -> list[tuple[tuple[str, int], Callable[[], bytes], int]]:
        """Return the batches in order, as (partition, function that builds the batch, number of records).

        Do not add records after this. Build each batch only once.
        """
        batches = [*self._full, *self._open.items()]
        return [(target, builder.build, builder.record_count()) for target, (builder, _) in batches]

    async def send(
        self,
        producer: AIOKafkaProducer,
        patience_s: float | None = None,
        is_stuck: Callable[[], bool] = lambda: False,
        is_excused: Callable[[tuple[str, int]], bool] = lambda _: False,
    ) -> dict[tuple[str, int], int]:
        """Send everything and await all answers. Return the offset after the last record of each partition.

        Every future is read even if one fails, since a commit would succeed without a rejected batch. Raises
        RecordsRefusedError if a topic refuses records. Raises TargetsStalledError if partitions of users, or of topics
        in `can_wait`, do not answer for `patience_s` (not counted while a partition `is_excused`), or if the
        transaction `is_stuck` after that time. Otherwise raises the producer's error.
        """
        queues: dict[tuple[str, int], list[_Batch]] = {}
        for target, batch in [*self._full, *self._open.items()]:
            queues.setdefault(target, []).append(batch)
        sendings = {
            target: _Sending(
                target,
                [origin for batch in batches for origin in batch.origins[:1]],
                can_wait=target[0] in self._can_wait,
            )
            for target, batches in queues.items()
        }
        tasks = [
            asyncio.create_task(_send_in_order(producer, sendings[target], batches, self.written))
            for target, batches in queues.items()
        ]
        try:
            await _answered(tasks, list(sendings.values()), patience_s, is_stuck, is_excused)
        finally:
            for task in tasks:
                task.cancel()
        sent = [task.exception() or task.result() for task in tasks]
        failures = [answer for answer in sent if isinstance(answer, BaseException)]
        refusals = [failure for failure in failures if isinstance(failure, RecordsRefusedError)]
        if refusals:
            # A topic without write permission cannot be part of a transaction, so all other batches fail too.
            refusal = next((refusal for refusal in refusals if refusal.is_of_topic), refusals[0])
            if refusal.is_of_topic or len(refusals) == len(failures):
                refusal.beside = [other for other in refusals if other is not refusal]
                raise refusal
        for failure in failures:
            if not isinstance(failure, RecordsRefusedError):
                raise failure  # the producer or the broker failed, so refusals of records do not count
        taken = {target: answer for target, answer in zip(queues, sent, strict=True) if isinstance(answer, _Taken)}
        for answer in taken.values():
            self.appended_at = answer.appended_at or self.appended_at
        return {target: answer.end for target, answer in taken.items()}

    def _first_of(self, topic: str, limit: int, key: bytes | None, value: bytes | None, headers: Headers) -> _Builder:
        """Begin a batch with a record. Raises RecordTooLargeError."""
        builder = _Builder(min(limit, MAX_BATCH_BYTES))
        metadata = builder.put(self.timestamp, key, value, headers)
        size = metadata.size + _BATCH_OVERHEAD
        if size > limit:
            raise RecordTooLargeError(topic, size, limit)
        return builder


class Written(NamedTuple):
    """The number of records that a partition accepted, and the offset after the last one."""

    records: int
    end: int


class _Taken(NamedTuple):
    """Accepted records, the offset after them, and the time of the last batch if the topic uses log append time."""

    records: int
    end: int
    appended_at: int | None


class _Sending:
    """Batches on their way to one partition, and the time (monotonic, s) of its last answer."""

    def __init__(self, target: tuple[str, int], origins: list[UserRecord], *, can_wait: bool) -> None:
        self.target = target
        self.can_be_left_out = can_wait or bool(origins)
        self.has_answers_only = bool(origins) and not any(isinstance(origin, Entry) for origin in origins)
        self.answered_at = asyncio.get_running_loop().time()
        self.is_done = False


async def _answered(
    tasks: list[asyncio.Task[_Taken]],
    sendings: list[_Sending],
    patience_s: float | None,
    is_stuck: Callable[[], bool],
    is_excused: Callable[[tuple[str, int]], bool],
) -> None:
    """Wait until all batches are answered or failed. Raises TargetsStalledError, without places if only `is_stuck`."""
    begun_at = asyncio.get_running_loop().time()
    left = set(tasks)
    while left:
        _, left = await asyncio.wait(left, timeout=None if patience_s is None else patience_s / 4)
        if patience_s is None or not left:
            continue
        now = asyncio.get_running_loop().time()
        for excused in (sending for sending in sendings if is_excused(sending.target)):
            excused.answered_at = now
        long_ago = now - patience_s
        stalled = [s for s in sendings if s.can_be_left_out and not s.is_done and s.answered_at < long_ago]
        if stalled or (begun_at < long_ago and is_stuck()):
            others = [sending.target for sending in stalled if not sending.has_answers_only]
            answers = [sending.target for sending in stalled if sending.has_answers_only]
            raise TargetsStalledError(others, answers, patience_s)


async def _send_in_order(
    producer: AIOKafkaProducer, sending: _Sending, batches: list[_Batch], written: dict[tuple[str, int], Written]
) -> _Taken:
    topic, partition = sending.target
    taken = _Taken(0, 0, None)
    try:
        for builder, origins in batches:  # the producer accepts one batch of a partition at a time
            count = builder.record_count()
            try:
                future = await producer.send_batch(builder, topic, partition=partition)
                future.add_done_callback(retrieve)
                answer = await future
            except REFUSED as error:
                raise RecordsRefusedError(topic, error, origins, partition) from error
            except BrokerResponseError as error:
                if not sending.can_be_left_out or isinstance(error, OF_PRODUCER):
                    raise
                raise RecordsRefusedError(topic, error, origins, partition) from error
            sending.answered_at = asyncio.get_running_loop().time()
            appended_at = answer.timestamp if answer.timestamp_type == LOG_APPEND_TIME else None
            taken = _Taken(taken.records + count, answer.offset + count, appended_at)
            written[sending.target] = Written(taken.records, taken.end)
    finally:
        sending.is_done = True
    return taken
