"""Reads one range of offsets to its end.

The end is a position, not a record: markers of transactions, records of aborted transactions, and compacted records are
offsets without a record. A range ends at the first record after it, or when the end of the log is reported.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from .idle import IdleClients
from .options import ReadOptions, TopicPart
from .ranges import OffsetRange
from .silence import SILENT

Message = Any
"""confluent_kafka's Message, whose type hints allow None everywhere."""

_CHUNK = 10_000
_LITTLE = {
    "auto.offset.reset": "earliest",  # records can be deleted meanwhile
    "queued.min.messages": 1,
    "fetch.message.max.bytes": 16_384,
}
"""Configuration of a consumer that reads one record of each partition."""
_POLL_S = 0.05
_TIMEOUT_S = 30.0
_PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)

_idle = IdleClients(lambda configuration: Consumer(dict(configuration), logger=SILENT), Consumer.close)

WHAT_TO_DO = (
    "To go on with what is left: run a batch job again; for a stream, set the option failOnDataLoss to false "
    "(`light-scheduler pipeline archive --allow-data-loss`)."
)
"""The advice in a `DataLossError`."""


class DataLossError(RuntimeError):
    """Offsets to be read are no longer in the log."""


def read_range(options: ReadOptions, wanted: OffsetRange) -> Generator[list[Message], None, None]:
    """Yield the records of a range, in order and in chunks.

    Raises DataLossError (unless `failOnDataLoss` is false), TimeoutError if nothing arrives within the poll time-out,
    and KafkaException.
    """
    if len(wanted) <= 0:
        return
    held = _idle.take(options.client)
    consumer = held.client
    try:
        consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.start)])
        yield from _chunks(consumer, options, wanted)
    except BaseException:
        consumer.close()
        raise
    consumer.unassign()
    _idle.leave(held)


def first_timestamps(options: ReadOptions, wanted: Sequence[OffsetRange]) -> dict[TopicPart, int]:
    """Return the timestamp (UTC epoch ms) of the first record in each range that has any, or of the first that is left.

    One consumer reads all of them, and little more than these records. Raises TimeoutError if none arrives within
    the poll time-out, and KafkaException.
    """
    left = {(one.topic, one.partition): one for one in wanted if len(one) > 0}
    found: dict[TopicPart, int] = {}
    if not left:
        return found
    consumer = Consumer({**options.client, **_LITTLE}, logger=SILENT)
    try:
        consumer.assign([TopicPartition(*part, one.start) for part, one in left.items()])
        received_at = time.monotonic()
        while left:
            messages: list[Message] = consumer.consume(len(left), _POLL_S)
            if ended := [part for message in messages if (part := _noted(message, left, found)) is not None]:
                received_at = time.monotonic()
                consumer.pause([TopicPartition(*part) for part in ended])
            elif time.monotonic() - received_at > options.patience_ms / 1_000:
                raise TimeoutError(f"{next(iter(left.values()))}: no record arrived within {options.patience_ms} ms")
    finally:
        consumer.close()
    return found


def _noted(message: Message, left: dict[TopicPart, OffsetRange], found: dict[TopicPart, int]) -> TopicPart | None:
    """Note the first record of a range, or that it has none. Return which of those `left` is done with that."""
    error, part = message.error(), (message.topic(), message.partition())
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        if passes(error):
            return None
        raise KafkaException(error)
    if part not in left or (error is not None and message.offset() < left[part].end):
        return None
    if error is None and message.offset() < left[part].end:
        found[part] = message.timestamp()[1]
    del left[part]
    return part


def _chunks(consumer: Consumer, options: ReadOptions, wanted: OffsetRange) -> Generator[list[Message], None, None]:
    received_at = time.monotonic()
    ended = False
    while not ended:
        chunk: list[Message] = consumer.consume(_CHUNK, _POLL_S)
        if not chunk:
            if time.monotonic() - received_at > options.patience_ms / 1_000:
                raise TimeoutError(f"{wanted}: no record arrived within {options.patience_ms} ms")
            continue
        received_at = time.monotonic()
        inside: list[Message] = []
        for message in chunk:
            error = message.error()
            if error is None:
                if message.offset() >= wanted.end:
                    ended = True
                    break
                inside.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended = message.offset() >= wanted.end
            elif error.code() in _GONE:
                ended = not _skip_lost(consumer, options, wanted)
            elif not passes(error):
                raise KafkaException(error)
        if inside:
            # Most ranges end with a record: then there is no need to wait for the end of the log.
            ended = ended or inside[-1].offset() + 1 >= wanted.end
            yield inside


def passes(error: KafkaError) -> bool:
    """Return whether an error may be temporary."""
    return error.code() in _PASSING or error.retriable()


def _skip_lost(consumer: Consumer, options: ReadOptions, wanted: OffsetRange) -> bool:
    """Skip to the remaining part of a range. Return whether there is any."""
    part = TopicPartition(wanted.topic, wanted.partition)
    low, high = consumer.get_watermark_offsets(part, timeout=_TIMEOUT_S, cached=False)
    if options.fail_on_data_loss:
        raise DataLossError(
            f"{wanted} is not all in the log, which holds [{low}, {high}): records were deleted before they were read. "
            f"{WHAT_TO_DO}"
        )
    if low >= wanted.end or high <= wanted.start:
        return False
    consumer.assign([TopicPartition(wanted.topic, wanted.partition, max(low, wanted.start))])
    return True
