"""The headers of a firing: the user's own, followed by the origin of the message.

    schedule-id  schedule-tenant  schedule-firing-id  schedule-due  schedule-fired-at  schedule-sequence
    schedule-attempt  schedule-version  schedule-source-topic  schedule-source-partition  schedule-source-offset
    schedule-delivery-id

Firings of a backoff series also have `schedule-original-due`, when its first attempt was due. Redriven dead letters
have `schedule-redriven-from` (see `redrive`). Firings that can be completed have `schedule-key`, the key of their
schedule, unless that is its id. All except keys are UTF-8 text, with numbers in decimal. Due times and `fired-at` are
UTC epoch ms.
"""

from __future__ import annotations

from light_scheduler.errors import FormatError
from light_scheduler.model import Backoff, Entry, Firing, FixedDelay, Headers, HomeKey, Schedule

from .fields import CONTROL_PREFIX
from .record import CommandRecord

LAST_HEADERS = (
    "id",
    "tenant",
    "firing-id",
    "due",
    "fired-at",
    "sequence",
    "attempt",
    "version",
    "source-topic",
    "source-partition",
    "source-offset",
    "delivery-id",
)
"""Names of the last headers of a firing, without prefix and in this order, unless optional headers follow."""

REPORTED = FixedDelay, Backoff
"""Triggers of schedules whose firings can be completed without an acknowledgement timeout."""

_HEADERS = frozenset(CONTROL_PREFIX + name for name in (*LAST_HEADERS, "original-due", "redriven-from", "key"))


class _NumberHeader(dict[int, tuple[str, bytes]]):
    """Headers with a number, by the number. Most numbers are small, and their headers are created once."""

    def __init__(self, field: str) -> None:
        self._name = CONTROL_PREFIX + field
        super().__init__((number, self[number]) for number in range(256))

    def __missing__(self, number: int) -> tuple[str, bytes]:
        return self._name, b"%d" % number


_SEQUENCE = _NumberHeader("sequence")
_ATTEMPT = _NumberHeader("attempt")
_VERSION = _NumberHeader("version")
_SOURCE_PARTITION = _NumberHeader("source-partition")


def firing_headers(entry: Entry, fired_at: int, source_topic: bytes) -> Headers:
    """Return the headers of an entry's next firing, which is produced at `fired_at` (UTC epoch ms)."""
    schedule = entry.schedule
    progress = entry.progress
    identity = schedule.id.encode()
    due = b"%d" % progress.due
    source_offset = b"%d" % schedule.source_offset
    delivery = b"%b:%d:%b:%d:%d:%b:%d" % (  # see model.delivery_id
        source_topic,
        schedule.source_partition,
        source_offset,
        schedule.version,
        progress.sequence,
        due,
        progress.attempt,
    )
    headers = [
        *schedule.headers,
        ("schedule-id", identity),
        ("schedule-tenant", schedule.tenant.encode()),
        ("schedule-firing-id", b"%b@%b" % (identity, due)),
        ("schedule-due", due),
        ("schedule-fired-at", b"%d" % fired_at),
        _SEQUENCE[progress.sequence],
        _ATTEMPT[progress.attempt],
        _VERSION[schedule.version],
        ("schedule-source-topic", source_topic),
        _SOURCE_PARTITION[schedule.source_partition],
        ("schedule-source-offset", source_offset),
        ("schedule-delivery-id", delivery),
    ]
    if progress.first_due is not None:
        headers.append(("schedule-original-due", b"%d" % progress.first_due))
    if (key := told_key(schedule)) is not None:
        headers.append(("schedule-key", key))
    return headers


def told_key(schedule: Schedule) -> bytes | None:
    """Return the schedule's key for firings that can be completed; None if it is the id, unknown or not needed."""
    if schedule.home_key == HomeKey.ID:
        return None
    is_reported = schedule.acknowledgement is not None or isinstance(schedule.trigger, REPORTED)
    return schedule.key if is_reported else None


def parse_firing(record: CommandRecord) -> Firing:
    """Parse a delivered message: its schedule and occurrence, and the user's own headers separately.

    Raises FormatError if the record does not come from the scheduler.
    """
    ours: dict[str, bytes] = {}
    user: Headers = []
    for header in record.headers:
        name, value = header
        if name in _HEADERS and value is not None:
            ours[name] = value
        else:
            user.append(header)

    def text(name: str) -> str:
        try:
            return ours[CONTROL_PREFIX + name].decode()
        except (KeyError, UnicodeDecodeError):
            raise FormatError(f"not a message of the scheduler: it has no header {CONTROL_PREFIX}{name}") from None

    def number(name: str) -> int:
        digits = text(name)
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            raise FormatError(f"not a message of the scheduler: header {CONTROL_PREFIX}{name} is not a number")
        return int(digits)

    return Firing(
        tenant=text("tenant"),
        id=text("id"),
        due=number("due"),
        fired_at=number("fired-at"),
        sequence=number("sequence"),
        attempt=number("attempt"),
        version=number("version"),
        source_topic=text("source-topic"),
        source_partition=number("source-partition"),
        source_offset=number("source-offset"),
        key=record.key,
        payload=record.value,
        headers=user,
        original_due=number("original-due") if "schedule-original-due" in ours else None,
        delivery_id=text("delivery-id") if "schedule-delivery-id" in ours else None,
        schedule_key=ours.get("schedule-key"),
    )
