"""Probes on their way, as records of a commands topic.

    schedule-probe   sent:number:signature    a worker asks the lane of this partition to schedule its probe
                     fired:number:signature   the probe has fired

The number is 128 random bits, as 32 hexadecimal digits. The key is null, the value is empty, and there is no other
header, whatever the dialect of the topic. The signature is as in `handover`, of the topic and the partition.
"""

from __future__ import annotations

import re

from light_scheduler.model import Headers
from light_scheduler.model.probe import ProbeMark

from .record import CommandRecord
from .signatures import is_signed, not_ours, signed

PROBE = "schedule-probe"
NO_VALUE = b""

_FORM = re.compile(r"(sent|fired):([0-9a-f]{32}):[0-9a-f]{64}", re.ASCII)


def probe_headers(mark: ProbeMark, topic: str, partition: int, secret: bytes) -> Headers:
    """Return the headers of a record for a partition of a commands topic."""
    return [signed(PROBE, f"{mark.step}:{mark.number}", _content(topic, partition), secret)]


def is_of_probe(record: CommandRecord) -> bool:
    """Return whether a record says something of a probe; it may be forged."""
    return record.key is None and record.value == NO_VALUE and [name for name, _ in record.headers] == [PROBE]


def probe_mark(record: CommandRecord) -> ProbeMark:
    """Read what a record of a probe says; it may be forged. Raises InvalidCommand."""
    match = _FORM.fullmatch((record.headers[0][1] or b"").decode(errors="replace"))
    if match is None:
        raise not_ours(PROBE)
    return ProbeMark("sent" if match[1] == "sent" else "fired", match[2])


def require_genuine_probe(record: CommandRecord, topic: str, secret: bytes) -> None:
    """Raise InvalidCommand unless a worker has written a record of a probe for this partition of its topic."""
    name, value = record.headers[0]
    if not is_signed(name, value, _content(topic, record.partition), secret):
        raise not_ours(name)


def _content(topic: str, partition: int) -> bytes:
    return f"{topic}:{partition}".encode()
