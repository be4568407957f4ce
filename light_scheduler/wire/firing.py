"""The headers of a firing: the user's own, then where the message comes from.

    schedule-id  schedule-tenant  schedule-firing-id  schedule-due  schedule-fired-at  schedule-sequence
    schedule-attempt  schedule-version  schedule-source-topic  schedule-source-partition  schedule-source-offset
    schedule-delivery-id

Those of a backoff series also have `schedule-original-due`, when its first attempt was due; those of dead letters
that were sent again `schedule-redriven-from` (see `redrive`); those that can be reported completed `schedule-key`, the
key of their schedule, unless that is its id. All but keys are UTF-8 text, numbers in decimal; due times and
`fired-at` are UTC epoch ms.
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
"""The names of a firing's last headers, without their prefix, in this order, unless it has one of those that follow."""

REPORTED = FixedDelay, Backoff
"""Triggers of schedules that consumers can report completed though these name no time-out."""

_HEADERS = frozenset(CONTROL_PREFIX + name for name in (*LAST_HEADERS, "original-due", "redriven-from", "key"))


class _NumberHeader(dict[int, tuple[str, bytes]]):
    """A header by the number that it holds: most numbers are small, and their headers are made once."""

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
    """Return the headers of an entry's next firing, produced at an instant (UTC epoch ms)."""
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
    """Return the key of a schedule that its firings tell, for reports on them; None: its id is the key, or unknown."""
    if schedule.home_key == HomeKey.ID:
        return None
    is_reported = schedule.acknowledgement is not None or isinstance(schedule.trigger, REPORTED)
    return schedule.key if is_reported else None


def parse_firing(record: CommandRecord) -> Firing:
    """Read a delivered message: whose it is, which occurrence, and the user's own headers apart.

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
