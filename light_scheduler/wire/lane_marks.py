"""Records that lanes forward to each other through their commands topic, each with a header that only lanes write.

    schedule-forwarded-from    partition:offset:timestamp of the original record: this is a copy in another partition,
                               for a schedule that may be there; with a :token, a bulk command, whose arrival
                               (`model.arrival`) is in the place of the offset; with
                               :?partitions:signature, :=partitions:signature or :.partitions:signature, a command that
                               is forwarded because the topic has grown
    light-scheduler-bulk-reach  flat, the number of partitions, and :signature: for which of them the copy of a bulk
                               command was made, in a topic that has grown
    schedule-bulk-reach        the same with tree or part: a copy for workers that know this header only
    schedule-bulk-count        arrival:partition:count:token: the number of schedules in a partition that were changed
                               by the bulk command that arrived here then; key and value are null
    light-scheduler-bulk-missing  partition[,partition...]: next to a count, the partitions that are not known to have
                               executed the command; workers that do not know this header still use the count

The headers are removed before a dialect reads the record. A copy is never forwarded again, unless the topic has grown
(see `lanes.growing.moving`): `?` asks the former partition of the key. That partition forwards the copy with `=` to the
current partition of the key. If it has the schedule, it sends the schedule ahead of the copy (see `handover`). `.`
tells the asking partition that its command is executed elsewhere.

A copy counts as the original record: delays count from the original's timestamp, and the original's offset is used in
the answer and in a generated id.

The token is 128 random bits, generated for each bulk command by the lane that copies it. A count without it is refused,
so forging one requires reading the commands topic. The signature is as in `handover`, over the topic and the whole
record. It matters because a question with more partitions restarts a lane.

Workers that do not know reaches must execute a `flat` copy, which is the complete command, so they must take its header
for the sender's own. They must refuse `tree` and `part`, and report that they changed nothing, as for every copy with
an unknown control header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from secrets import token_hex
from typing import Literal, NamedTuple, cast

import msgspec

from light_scheduler.model import Headers
from light_scheduler.model.adoption import Adoption, Emptied
from light_scheduler.model.arrival import offset_of
from light_scheduler.model.rate_lending import RateAsk, RateGrant
from light_scheduler.model.room_lending import RoomAsk, RoomGrant

from .content_type import CONTENT_TYPE, JSON_COMMAND
from .handover import ADOPTED_FROM, EMPTIED, handed_over
from .rate_lending import RATE_ASKED, RATE_LENT, rate_in
from .record import CommandRecord, Copy, UnsentRecord, sent_at
from .room_lending import ROOM_ASKED, ROOM_GIVEN, room_in
from .signatures import not_ours, parsed, require_signed, signed

FORWARDED_FROM = "schedule-forwarded-from"
BULK_COUNT = "schedule-bulk-count"
BULK_REACH = "schedule-bulk-reach"
FLAT_REACH = "light-scheduler-bulk-reach"
BULK_MISSING = "light-scheduler-bulk-missing"

_ORIGIN = re.compile(
    r"(\d{1,10}):(\d{1,19}):(-?\d{1,19})(?::(?:([0-9a-f]{32})|([?=.])(\d{1,10}):[0-9a-f]{64}))?", re.ASCII
)
_REACH = re.compile(r"(flat|tree|part)(\d{1,10}):[0-9a-f]{64}", re.ASCII)
_MISSING = re.compile(r"(\d{1,10}(?:,\d{1,10})*)", re.ASCII)
_COUNT = re.compile(r"(\d{1,19}):(\d{1,10}):(\d{1,19}):([0-9a-f]{32})", re.ASCII)

Loan = RoomAsk | RoomGrant | RateAsk | RateGrant
"""Messages with which partitions lend each other parts of tenants' quotas."""


ReachKind = Literal["flat", "tree", "part"]


class BulkReach(NamedTuple):
    """The partitions for which a bulk command was copied, by a lane that knew of `partitions` in total.

    `flat` is for all partitions. `tree` is for those from before the topic grew. They copy it to the others as `part`,
    for their schedules that have moved there.
    """

    kind: ReachKind
    partitions: int


class Origin(NamedTuple):
    """The original record: its place and timestamp (UTC epoch ms), and the `token` of a bulk command, whose `offset` is
    its arrival.

    `partitions` is the number that the forwarding lane knew, if the topic had grown; otherwise 0. With `asks`, it wants
    to know whether the schedule is here. If it `is_elsewhere`, the command must not be executed here. `reach` is for
    bulk commands; None if the lane that copied it knew of no growth.
    """

    partition: int
    offset: int
    timestamp: int
    token: str = ""
    asks: bool = False
    partitions: int = 0
    is_elsewhere: bool = False
    reach: BulkReach | None = None


class Count(NamedTuple):
    """The number of schedules of a partition changed by the bulk command with this arrival, `offset`, and token.

    `missing` are the partitions among those counted that are not known to have executed it.
    """

    offset: int
    partition: int
    changed: int
    token: str
    missing: tuple[int, ...] = ()


class Grown(NamedTuple):
    """A topic that has grown: its number of partitions, and the secret of its workers."""

    topic: str
    partitions: int
    secret: bytes


def new_token() -> str:
    """Return a token for a bulk command: 32 random hexadecimal digits."""
    return token_hex(16)


def forwarded(record: CommandRecord, token: str = "") -> Headers:  # nosec B107 # none
    """Return the headers of a record's copy in another partition. Key and value stay the same.

    `token` is for bulk commands, whose copies name the record that this partition has.
    """
    partition, offset = (record.partition, record.offset) if token else sent_at(record)
    origin = f"{partition}:{offset}:{record.timestamp}" + (f":{token}" if token else "")
    headers = _without(record, FLAT_REACH) if token else record.headers
    return [*headers, (FORWARDED_FROM, origin.encode())]


def spread(record: CommandRecord, token: str, kind: ReachKind, to: Grown) -> Headers:
    """Return the headers of a bulk command's copy in a topic that has grown."""
    headers, name = forwarded(record, token), FLAT_REACH if kind == "flat" else BULK_REACH
    content = _content(to.topic, record, headers)
    return [*headers, signed(name, f"{kind}{to.partitions}", content, to.secret)]


def relayed(
    record: CommandRecord, origin: Origin | None, to: Grown, *, asks: bool = False, is_elsewhere: bool = False
) -> Headers:
    """Return the headers of a copy of a record in a topic that has grown. `origin` is for a record that is a copy."""
    sent, way = origin or sent_at(record), "?" if asks else "." if is_elsewhere else "="
    timestamp = record.timestamp if origin is None else origin.timestamp
    mark = f"{sent.partition}:{sent.offset}:{timestamp}:{way}{to.partitions}"
    content = _content(to.topic, record, record.headers)
    return [*record.headers, signed(FORWARDED_FROM, mark, content, to.secret)]


def naming(tenant: str, id: str) -> CommandRecord:
    """Return a small command that names a schedule, in the place of one that is too large to be forwarded.

    It is never executed: forward it only to say that the other command `is_elsewhere`.
    """
    value = msgspec.json.encode({"command": "cancel", "tenant": tenant, "id": id})
    return UnsentRecord(None, value, [(CONTENT_TYPE, JSON_COMMAND)])


def require_relayed(copy: CommandRecord, topic: str, secret: bytes) -> None:
    """Raise InvalidCommand unless a worker has forwarded a record in a topic that has grown."""
    _require_signed_once(copy, topic, secret, FORWARDED_FROM)


def require_spread(copy: CommandRecord, topic: str, secret: bytes) -> None:
    """Raise InvalidCommand unless a worker has copied a bulk command in a topic that has grown."""
    _require_signed_once(copy, topic, secret, BULK_REACH, FLAT_REACH)


def count_headers(count: Count) -> Headers:
    """Return the headers of a record with a count. Key and value are null."""
    said = BULK_COUNT, f"{count.offset}:{count.partition}:{count.changed}:{count.token}".encode()
    return [said, (BULK_MISSING, ",".join(map(str, count.missing)).encode())] if count.missing else [said]


def mark_of(record: CommandRecord) -> Origin | Count | Adoption | Emptied | Loan | None:
    """Parse the header of a lane; None for an original record. Raises InvalidCommand if the header is malformed."""
    for name, value in record.headers:
        if name == FORWARDED_FROM:
            partition, offset, timestamp, token, way, partitions = parsed(_ORIGIN, name, value)
            place = int(partition), int(offset), int(timestamp)
            reach = _reach_of(record) if token else None
            return Origin(*place, token, way == "?", int(partitions or 0), way == ".", reach)
        if name in (ADOPTED_FROM, EMPTIED):
            return handed_over(name, value)
        if name in (ROOM_ASKED, ROOM_GIVEN):
            return room_in(name, value)
        if name in (RATE_ASKED, RATE_LENT):
            return rate_in(name, value)
        if name == BULK_COUNT:
            offset, partition, changed, token = parsed(_COUNT, name, value)
            return Count(int(offset), int(partition), int(changed), token, _missing(record))
    return None


def as_sent(copy: CommandRecord, origin: Origin) -> Copy:
    """Return a copy without the headers added by forwarding."""
    sent = origin.partition, offset_of(origin.offset)
    reaches = () if origin.reach is None else (BULK_REACH, FLAT_REACH)
    headers = _without(copy, FORWARDED_FROM, *reaches)
    return Copy(copy.key, copy.value, headers, copy.partition, copy.offset, origin.timestamp, sent)


def _reach_of(copy: CommandRecord) -> BulkReach | None:
    for name, value in copy.headers:
        if name in (BULK_REACH, FLAT_REACH):
            kind, partitions = parsed(_REACH, name, value)
            return BulkReach(cast(ReachKind, kind), int(partitions))
    return None


def _missing(record: CommandRecord) -> tuple[int, ...]:
    for name, value in record.headers:
        if name == BULK_MISSING:
            (partitions,) = parsed(_MISSING, name, value)
            return tuple(map(int, partitions.split(",")))
    return ()


def _require_signed_once(copy: CommandRecord, topic: str, secret: bytes, *names: str) -> None:
    mark, *others = [header for header in copy.headers if header[0] in names]
    if others:
        raise not_ours(mark[0])
    require_signed([mark], _content(topic, copy, _without(copy, *names)), secret)


def _without(record: CommandRecord, *names: str) -> Headers:
    return [header for header in record.headers if header[0] not in names]


def _content(topic: str, record: CommandRecord, headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    return msgspec.msgpack.encode((topic, record.key, record.value, list(headers)))
