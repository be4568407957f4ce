"""Records in commands topics with which partitions lend each other room for pending schedules.

    schedule-room-asked    tenant:partition:number:since:most:partitions:spare:wanted:signature
    schedule-room-given    tenant:partition:number:since:most:partitions:amount:more:signature

`partition` is the sender, and `number` that of the ask; the version of the quota follows; `more` is 0 or 1 (see
`model.room_lending`). Key and value are null. The signature (see `signatures`) covers the topic and the receiving
partition, so a copy elsewhere does not count. Each answer counts once, since it has the number of its ask.
"""

from __future__ import annotations

import re

from light_scheduler.model import Headers
from light_scheduler.model.room_lending import QuotaVersion, RoomAsk, RoomGrant

from .signatures import bound_to, parsed, signed

ROOM_ASKED = "schedule-room-asked"
ROOM_GIVEN = "schedule-room-given"

_NUMBER = r"(\d{1,19})"
_VERSION = rf"{_NUMBER}:{_NUMBER}:(\d{{1,10}})"
_BEGIN = rf"([A-Za-z0-9._-]{{1,64}}):(\d{{1,10}}):{_NUMBER}:{_VERSION}"
_FORMS = {
    ROOM_ASKED: re.compile(rf"{_BEGIN}:(-?\d{{1,19}}):{_NUMBER}:[0-9a-f]{{64}}", re.ASCII),
    ROOM_GIVEN: re.compile(rf"{_BEGIN}:{_NUMBER}:([01]):[0-9a-f]{{64}}", re.ASCII),
}


def room_headers(said: RoomAsk | RoomGrant, topic: str, to: int, secret: bytes) -> Headers:
    """Return the headers of an ask or an answer for one partition of a topic. Key and value are null."""
    tenant, partition, number, version, *rest = said
    name = ROOM_ASKED if isinstance(said, RoomAsk) else ROOM_GIVEN
    text = ":".join(map(str, (tenant, partition, number, *version, *map(int, rest))))
    return [signed(name, text, bound_to(topic, to), secret)]


def room_in(name: str, value: bytes | None) -> RoomAsk | RoomGrant:
    """Parse a header, which may be forged. Raises InvalidCommand."""
    tenant, *numbers = parsed(_FORMS[name], name, value)
    partition, number, since, most, partitions, first, second = map(int, numbers)
    version = QuotaVersion(since, most, partitions)
    if name == ROOM_ASKED:
        return RoomAsk(tenant, partition, number, version, first, second)
    return RoomGrant(tenant, partition, number, version, first, bool(second))
