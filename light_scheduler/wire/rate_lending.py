"""Records in commands topics with which partitions lend each other tokens of rates.

    schedule-rate-asked    kind:tenant:partition:number:wanted:signature
    schedule-rate-lent     kind:tenant:partition:number:amount:signature

`kind` is `commands` or `firings`; the tenant is empty for the cap of all tenants together; `partition` is the sender,
and `number` that of the ask (see `model.rate_lending`). Key and value are null. The signature is as in `room_lending`.
Each answer counts once, since the asking partition knows its open asks.

Workers of a version without rate lending do not know these headers. For them, a second header follows: an answer to an
ask for room that was never sent, which they ignore.
"""

from __future__ import annotations

import re

from light_scheduler.model import Headers
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateName
from light_scheduler.model.room_lending import QuotaVersion, RoomGrant

from .room_lending import room_headers
from .signatures import bound_to, parsed, signed

RATE_ASKED = "schedule-rate-asked"
RATE_LENT = "schedule-rate-lent"

_UNASKED = RoomGrant("default", 0, 0, QuotaVersion(0, 0, 0), 0, may_have_more=False)

_FORM = re.compile(r"(commands|firings):([A-Za-z0-9._-]{0,64}):(\d{1,10}):(\d{1,19}):(\d{1,19}):[0-9a-f]{64}", re.ASCII)


def rate_headers(said: RateAsk | RateGrant, topic: str, to: int, secret: bytes) -> Headers:
    """Return the headers of an ask or an answer for one partition of a topic. Key and value are null."""
    name, *numbers = said
    header = RATE_ASKED if isinstance(said, RateAsk) else RATE_LENT
    ours = signed(header, ":".join(map(str, (*name, *numbers))), bound_to(topic, to), secret)
    return [ours, *room_headers(_UNASKED, topic, to, secret)]


def rate_in(header: str, value: bytes | None) -> RateAsk | RateGrant:
    """Parse a header, which may be forged. Raises InvalidCommand."""
    kind, tenant, *numbers = parsed(_FORM, header, value)
    partition, number, amount = map(int, numbers)
    said = RateName(RateKind(kind), tenant), partition, number, amount
    return RateAsk(*said) if header == RATE_ASKED else RateGrant(*said)
