"""Reads one range of offsets to its end.

The end is a position, not a record: markers of transactions, records of aborted transactions, and compacted records are
offsets without a record. A range ends at the first record after it, or when the end of the log is reported.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from .idle import IdleClients
from .options import ReadOptions
from .ranges import OffsetRange
from .silence import SILENT

Message = Any
"""confluent_kafka's Message, whose type hints allow None everywhere."""

_CHUNK = 10_000
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
