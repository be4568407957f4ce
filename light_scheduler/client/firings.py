"""The consumer's side: reading deliveries, and retrying failed ones later."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Any, NamedTuple, Self

import msgspec

from light_scheduler.errors import ClientError, InvalidCommand
from light_scheduler.model import Firing as Delivered
from light_scheduler.model import Headers
from light_scheduler.wire import parse_firing as parse

from .records import record_of

ATTEMPT = "retry-attempt"
ORIGINAL_DUE = "retry-original-due"
ORIGIN = "retry-of"
SOURCE = "retry-source"
"""Headers that `retry` adds to a message: number of the attempt (from 2), due time of the first attempt (UTC epoch ms),
its firing id, and the place of its command, since firing ids repeat."""

_READABLE_BYTES = 128
_HASH_DIGITS, _SOURCE_DIGITS = 32, 8


class Firing(Delivered, frozen=True, gc=False):
    """A message as its consumer receives it. Times are UTC epoch ms."""

    @classmethod
    def parse(cls, record: Any) -> Self:
        """Read a record of aiokafka, confluent-kafka or kafka-python.

        Raises FormatError if the record does not come from the scheduler.
        """
        return cls(**msgspec.structs.asdict(parse(record_of(record))))


def parse_firing(record: Any) -> Firing:
    """Read a record as `Firing.parse` does."""
    return Firing.parse(record)


class RetriesExhausted(ClientError):
    """A message has been retried as often as its backoff allows. `firing` is the last attempt."""

    def __init__(self, firing: Delivered, failures: int) -> None:
        super().__init__(
            f"{firing.tenant}/{firing.id} failed {failures} times and has no attempt left: store it, or allow more"
        )
        self.firing = firing


class Again(NamedTuple):
    """A retry of a message: its id, its delay (ms), and its headers."""

    id: str
    delay: int
    headers: Headers


def again(firing: Delivered, initial: int, factor: float, longest: int, attempts: int) -> Again:
    """Return the next attempt of a failed message. Durations are ms; the first retry comes after `initial`. There are
    up to `attempts` retries after the first delivery.

    The id is derived from the first firing, its command and the attempt. So reporting a failure twice creates one
    schedule, and another message that was due at the same time gets a schedule of its own. Raises RetriesExhausted, and
    InvalidCommand if the retry headers are invalid.
    """
    given = {name: value for name, value in firing.headers if name in (ATTEMPT, ORIGINAL_DUE, ORIGIN, SOURCE)}
    attempt = _number(given, ATTEMPT, 1)
    if attempt > attempts:
        raise RetriesExhausted(firing, attempt)
    first_due = _number(given, ORIGINAL_DUE, firing.due if firing.original_due is None else firing.original_due)
    origin, source = _origin(firing, given), _source(firing, given)
    delay = initial
    for _ in range(attempt - 1):
        following = delay * factor
        if following >= longest:
            delay = longest
            break
        delay = int(following)
    ours: Headers = [
        (ATTEMPT, b"%d" % (attempt + 1)),
        (ORIGINAL_DUE, b"%d" % first_due),
        (ORIGIN, origin.encode()),
        (SOURCE, source),
    ]
    others = [header for header in firing.headers if header[0] not in given]
    return Again(_retry_id(origin, source, attempt + 1), min(delay, longest), [*others, *ours])


def check_backoff(factor: float, attempts: int) -> None:
    """Raise InvalidCommand for a factor or a number of attempts that `again` cannot use."""
    if not isinstance(factor, int | float) or not 1 <= factor < math.inf:
        raise InvalidCommand("factor", f"is {factor}; it must be a number of at least 1")
    if not isinstance(attempts, int) or attempts < 0:
        raise InvalidCommand("attempts", f"is {attempts}; it must be a whole number of at least 0 (0: never retry)")


def _retry_id(origin: str, source: bytes, attempt: int) -> str:
    """Return an id that is always the same for an attempt. Workers refuse ids that are too long.

    In a long id, a hash replaces the end, so that it is no longer than the id of the first schedule, which was
    accepted.
    """
    ending = f"/retry/{attempt}"
    whole = f"{origin}~{sha256(source).hexdigest()[:_SOURCE_DIGITS]}{ending}"
    longest = max(len(_id_of(origin).encode()), _READABLE_BYTES)
    if len(whole.encode()) <= longest:
        return whole
    ending = f"~{sha256(origin.encode() + source).hexdigest()[:_HASH_DIGITS]}{ending}"
    return origin.encode()[: longest - len(ending)].decode(errors="ignore") + ending


def original_due(firing: Delivered) -> int:
    """Return when the first attempt of a message was due (UTC epoch ms)."""
    given = dict(firing.headers)
    return _number(given, ORIGINAL_DUE, firing.due if firing.original_due is None else firing.original_due)


def first_id(firing: Delivered) -> str:
    """Return the id of the schedule that a message or its retry comes from."""
    return _id_of(_origin(firing, dict(firing.headers)))


def attempt_of(firing: Delivered) -> int:
    """Return the number of the attempt; 1 for a message that is not a retry."""
    return _number(dict(firing.headers), ATTEMPT, 1)


def _origin(firing: Delivered, given: dict[str, bytes | None]) -> str:
    """Return the firing id of the first attempt."""
    return (given.get(ORIGIN) or firing.firing_id.encode()).decode(errors="replace")


def _source(firing: Delivered, given: dict[str, bytes | None]) -> bytes:
    """Return the place of the first attempt's command, and which of its firings it was."""
    place = (firing.source_topic, firing.source_partition, firing.source_offset, firing.version, firing.sequence)
    return given.get(SOURCE) or ":".join(map(str, place)).encode()


def _id_of(firing_id: str) -> str:
    return firing_id.rpartition("@")[0]


def _number(given: dict[str, bytes | None], name: str, default: int) -> int:
    if name not in given:
        return default
    text = (given[name] or b"").decode(errors="replace")
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise InvalidCommand(name, f"{text[:40]!r} is not a number: only `retry` sets this header")
    return int(text)
