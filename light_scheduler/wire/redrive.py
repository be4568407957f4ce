"""Records that redrive dead letters: the refused command, or the firing that was not delivered.

A redriven firing has the headers of a firing, and

    schedule-redriven-from   partition-offset of its dead letter

Its `schedule-delivery-id` ends with that place, so a consumer that deduplicates by it processes a dead letter once,
even if it is redriven several times.
"""

from __future__ import annotations

from light_scheduler.model import (
    Acknowledgement,
    DeadLetter,
    Entry,
    EventType,
    Headers,
    HistoryEvent,
    HomeKey,
    Once,
    Progress,
    Requester,
    Schedule,
    Target,
)

from .dialect import Dialect
from .fields import CONTROL_PREFIX
from .requester import REQUESTED_BY

REDRIVEN_FROM = CONTROL_PREFIX + "redriven-from"

REDRIVEN = "redriven from dead letter "
"""The beginning of the reason of `fired` events in the history. The place of the letter follows."""

_DELIVERY_ID = CONTROL_PREFIX + "delivery-id"

_REPORTED = Acknowledgement(timeout=0, max_attempts=1)
"""Stands for how a firing is to be completed: its message only tells the key for that."""


def refused_command_headers(letter: DeadLetter) -> Headers:
    """Return the headers of a refused command, without its first requester."""
    return [header for header in letter.headers if header[0] != REQUESTED_BY]


def redriven_command(letter: DeadLetter, source_topic: str, place: str) -> str:
    """Return the reason of the `changed` event for a redriven command. `place` is the place of its dead letter."""
    whose = "" if letter.id is None else f" for {letter.id}"
    return f"dead letter {place} redriven: command{whose}, to {source_topic}, partition {letter.source_partition}"


def deciding_key(letter: DeadLetter) -> bytes:
    """Return the key that decides the partition of an undelivered firing, if its sender did not choose a partition."""
    key = letter.key if letter.target_partition_key is None else letter.target_partition_key
    return (letter.id or "").encode() if key is None else key


def redriven_firing(
    letter: DeadLetter, source_topic: str, dialect: Dialect, place: str, last_event: HistoryEvent | None, now: int
) -> tuple[bytes | None, Headers]:
    """Return value and headers of a redriven firing. `place` is the place of its dead letter.

    `last_event` is the history event with which the firing became a dead letter. It has the version, sequence and
    attempt; without it, each is 1. `dialect` is that of the commands topic. Raises ValueError if the letter is not for
    a firing.
    """
    value, headers = dialect.delivered(_entry(letter, last_event), now, source_topic.encode())
    marked: Headers = [
        (name, given + b":" + place.encode() if name == _DELIVERY_ID and given else given) for name, given in headers
    ]
    return value, [*marked, (REDRIVEN_FROM, place.encode())]


def redriven_event(
    letter: DeadLetter, place: str, partition: int, last_event: HistoryEvent | None, requester: Requester, now: int
) -> HistoryEvent:
    """Return the `fired` event of a redriven firing.

    `place` is the place of its dead letter, `partition` that of the letter. `last_event` is as in `redriven_firing`.
    """
    return HistoryEvent(
        EventType.FIRED,
        letter.tenant,
        letter.id,
        version=1 if last_event is None else last_event.version,
        due=letter.due,
        at=now,
        sequence=1 if last_event is None else last_event.sequence,
        attempt=1 if last_event is None else last_event.attempt,
        target_topic=letter.target_topic,
        reason=REDRIVEN + place,
        partition=partition if last_event is None else last_event.partition,
        by=requester.by,
        address=requester.address,
    )


def _entry(letter: DeadLetter, last_event: HistoryEvent | None) -> Entry:
    if letter.id is None or letter.due is None or letter.target_topic is None:
        raise ValueError("not the dead letter of a firing")
    return Entry(
        Schedule(
            tenant=letter.tenant,
            id=letter.id,
            version=(last_event and last_event.version) or 1,
            trigger=Once(letter.due),
            target=Target(letter.target_topic, letter.key),
            payload=letter.value,
            headers=letter.headers,
            source_partition=letter.source_partition,
            source_offset=letter.source_offset,
            accepted_at=letter.at,
            acknowledgement=None if letter.schedule_key is None else _REPORTED,
            home_key=HomeKey.UNKNOWN if letter.schedule_key is None else letter.schedule_key,
        ),
        Progress(
            due=letter.due,
            arrival=letter.source_offset,
            sequence=(last_event and last_event.sequence) or 1,
            attempt=(last_event and last_event.attempt) or 1,
            first_due=letter.original_due,
        ),
    )
