"""Records with which partitions hand over schedules after a commands topic has grown. They are in that topic.

    schedule-adopted-from   partition:signature   the value is a pending schedule (`wire.state`) that moves here
    schedule-emptied        partition:partitions:signature   the partition has handed over all schedules that belong
                                                             elsewhere among `partitions`; key and value are null

The signature (see `signatures`) covers the rest of the header and the value. It is needed because limits and rights are
not checked again for an adopted schedule, which has passed them as a command.
"""

from __future__ import annotations

import re

from light_scheduler.errors import FormatError, FormatTooNew, InvalidCommand
from light_scheduler.model import Entry, Headers
from light_scheduler.model.adoption import Adoption, Emptied

from .record import CommandRecord
from .signatures import parsed, require_signed, signed
from .state import decode_entry

ADOPTED_FROM = "schedule-adopted-from"
EMPTIED = "schedule-emptied"

_FORMS = {
    ADOPTED_FROM: re.compile(r"(\d{1,10}):[0-9a-f]{64}", re.ASCII),
    EMPTIED: re.compile(r"(\d{1,10}):(\d{1,10}):[0-9a-f]{64}", re.ASCII),
}


def adoption_headers(partition: int, value: bytes, secret: bytes) -> Headers:
    """Return the headers of a record that hands over the schedule in `value`."""
    return [signed(ADOPTED_FROM, str(partition), value, secret)]


def emptied_headers(emptied: Emptied, secret: bytes) -> Headers:
    """Return the headers of a record which says that a partition has handed over everything."""
    return [signed(EMPTIED, f"{emptied.partition}:{emptied.partitions}", b"", secret)]


def handed_over(name: str, value: bytes | None) -> Adoption | Emptied:
    """Parse a header of a hand-over, which may be forged. Raises InvalidCommand."""
    numbers = map(int, parsed(_FORMS[name], name, value))
    return Emptied(*numbers) if name == EMPTIED else Adoption(*numbers)


def require_handed_over(record: CommandRecord, secret: bytes) -> None:
    """Raise InvalidCommand if a record was not written by a worker."""
    require_signed((header for header in record.headers if header[0] in _FORMS), record.value or b"", secret)


def adopted_entry(record: CommandRecord, secret: bytes) -> Entry:
    """Return the handed-over schedule. Raises InvalidCommand, FormatTooNew."""
    require_handed_over(record, secret)
    try:
        return decode_entry(record.value or b"")
    except FormatTooNew:
        raise
    except FormatError as error:
        raise InvalidCommand(ADOPTED_FROM, f"is on a record whose value is not a schedule: {error}") from error
