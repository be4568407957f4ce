"""Probes as records of a commands topic.

    schedule-probe   sent:number:signature    a worker asks the lane of this partition to schedule its probe
                     fired:number:signature   the probe has fired

The number is 128 random bits, as 32 hexadecimal digits. The key is null, the value is empty, and there are no other
headers, in any dialect. The signature (see `signatures`) covers the topic and the partition.
"""

from __future__ import annotations

import re

from light_scheduler.model import Headers
from light_scheduler.model.probe import ProbeMark

from .record import CommandRecord
from .signatures import bound_to, parsed, signed

PROBE = "schedule-probe"
NO_VALUE = b""

_FORM = re.compile(r"(sent|fired):([0-9a-f]{32}):[0-9a-f]{64}", re.ASCII)


def probe_headers(mark: ProbeMark, topic: str, partition: int, secret: bytes) -> Headers:
    """Return the headers of a probe's record for a partition of a commands topic."""
    return [signed(PROBE, f"{mark.step}:{mark.number}", bound_to(topic, partition), secret)]


def is_of_probe(record: CommandRecord) -> bool:
    """Return whether a record is about a probe. It may be forged."""
    return record.key is None and record.value == NO_VALUE and [name for name, _ in record.headers] == [PROBE]


def probe_mark(record: CommandRecord) -> ProbeMark:
    """Parse a record of a probe, which may be forged. Raises InvalidCommand."""
    step, number = parsed(_FORM, *record.headers[0])
    return ProbeMark("sent" if step == "sent" else "fired", number)
