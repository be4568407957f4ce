"""The verdict on a run: all faults, and an upper bound of their rate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from .lives import Arrival, Life
from .records import Record, RecordId, answer_of, control_of, digest, user_headers
from .replay import Replay, Trouble, answers_of

Kind = Literal["missing", "duplicate", "early", "after_cancel", "wrong", "out_of_order"]
KINDS: tuple[Kind, ...] = get_args(Kind)
UNACKNOWLEDGED = "unacknowledged"

_OURS = frozenset(
    {"id", "tenant", "firing-id", "delivery-id", "due", "fired-at", "sequence", "attempt", "version", "original-due"}
    | {"source-topic", "source-partition", "source-offset"}
)


@dataclass(frozen=True)
class Fault:
    """A broken promise: `whose` names the schedule or command, `what` describes it."""

    kind: str
    whose: str
    what: str


@dataclass
class Verdict:
    """The result of a check. `promises` is the number of checked commands and delivered messages."""

    commands: int = 0
    deliveries: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def promises(self) -> int:
        return self.commands + self.deliveries

    def counts(self) -> dict[str, int]:
        """Return the number of faults of each kind."""
        found = Counter(fault.kind for fault in self.faults)
        return {kind: found[kind] for kind in KINDS}


def check(
    *,
    commands: Iterable[Record],
    results: Iterable[Record],
    deliveries: Iterable[Record],
    dead_letters: Iterable[Record],
    partitions: Mapping[str, int],
) -> Verdict:
    """Compare deliveries with commands, once no work is left.

    All records are in log order within their partitions. `commands` are of one topic, `deliveries` of all target
    topics. `partitions` is the number of partitions of each target topic.
    """
    verdict = Verdict()
    answers, troubles = answers_of(map(answer_of, results))
    replay = Replay(answers, partitions)
    verdict.faults.extend(Fault(*trouble) for trouble in troubles)
    for command in commands:
        verdict.commands += 1
        verdict.faults.extend(Fault(*trouble) for trouble in replay.take(command))
    replay.close()
    order, names = _Order(), _Names()
    for record in deliveries:
        verdict.deliveries += 1
        verdict.faults.extend(Fault(*trouble) for trouble in _attach(record, replay.lives, order, names))
    for life in replay.lives.values():
        verdict.faults.extend(Fault(kind, life.name, what) for kind, what in life.troubles())
    verdict.faults.extend(Fault(*trouble) for trouble in _letters(dead_letters, replay))
    return verdict


def early(record: Record, seen_at: int) -> Fault | None:
    """Return the fault if a message could be read before it is due. `seen_at` is UTC epoch ms."""
    due = control_of(record).get("due") or ""
    if not due.isdigit() or seen_at >= int(due):
        return None
    where = f"{record.topic}-{record.partition}:{record.offset}"
    return Fault("early", where, f"due {due}, read at {seen_at}")


def wilson_upper(faults: int, promises: int, z: float = 1.959964) -> float:
    """Return the upper end of the 95 % Wilson interval of the failure rate."""
    if promises == 0:
        return 1.0
    rate, share = faults / promises, z * z / promises
    return (rate + share / 2 + z * math.sqrt(rate * (1 - rate) / promises + share / (4 * promises))) / (1 + share)


class _Order:
    """Plain schedules of a tenant in one partition that are due at the same instant fire in the order of their
    commands."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int, int, int, str], int] = {}

    def broken(self, record: Record, life: Life, due: int) -> bool:
        plain = life.form == "once" and life.ack_timeout is None and life.quiet is None and not life.triggers
        if not plain or life.version not in (None, 1):
            return False
        source, offset = life.place
        among = (record.topic, record.partition, source, due, life.tenant)
        before = self._last.get(among, -1)
        self._last[among] = max(before, offset)
        return offset < before


class _Names:
    """Delivery ids are unique: consumers drop a message whose id they have seen."""

    def __init__(self) -> None:
        self._whose: dict[str, tuple[RecordId, int, int, int, int]] = {}

    def is_taken(self, name: str, place: RecordId, delivery: Arrival) -> bool:
        """Register a delivery id. Return whether another delivery already has it."""
        whose = (place, delivery.version, delivery.sequence, delivery.due, delivery.attempt)
        return self._whose.setdefault(name, whose) != whose


def _attach(record: Record, lives: Mapping[RecordId, Life], order: _Order, names: _Names) -> Iterator[Trouble]:
    """Assign a delivered message to its life. Yield errors of the message itself."""
    control = control_of(record)
    where = f"{record.topic}-{record.partition}:{record.offset}"
    try:
        place = (int(control["source-partition"] or ""), int(control["source-offset"] or ""))
        delivery = Arrival(
            int(control["due"] or ""),
            int(control["fired-at"] or ""),
            record.timestamp,
            int(control["sequence"] or ""),
            int(control["attempt"] or ""),
            int(control["version"] or ""),
        )
    except (KeyError, ValueError) as error:
        yield "wrong", where, f"its headers say not where it comes from: {error!r}"
        return
    life = lives.get(place)
    if life is None:
        yield "wrong", where, f"comes of command {place[0]}:{place[1]}, which asked for no message"
        return
    life = life.of_version(delivery.version)
    life.deliveries.append(delivery)
    if digest(record.key, record.value, user_headers(record)) != life.contents:
        yield "wrong", life.name, f"key, payload or headers at {where} are not what was asked for"
    if control.keys() - _OURS:
        yield "wrong", life.name, f"headers {sorted(control.keys() - _OURS)} at {where}"
    if (control.get("id"), control.get("tenant")) != (life.id, life.tenant):
        yield "wrong", life.name, f"calls itself {control.get('tenant')}/{control.get('id')} at {where}"
    if control.get("firing-id") != f"{life.id}@{delivery.due}":
        yield "wrong", life.name, f"firing id {control.get('firing-id')} at {where}"
    if not (name := control.get("delivery-id")) or names.is_taken(name, place, delivery):
        yield "wrong", life.name, f"delivery id {name} at {where} is another message's, or none"
    if record.partition != life.partition:
        yield "wrong", life.name, f"is at {where}, and belongs to partition {life.partition}"
    if order.broken(record, life, delivery.due):
        yield "out_of_order", life.name, f"due {delivery.due}, stands at {where} after one that was asked for later"


def _letters(dead_letters: Iterable[Record], replay: Replay) -> Iterator[Trouble]:
    """Check that there is exactly one dead letter for each rejection, each refusal by a target, and each abandoned
    firing."""
    found: Counter[tuple[str, RecordId, int | None]] = Counter()
    for record in dead_letters:
        headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
        place = (int(headers["dead-letter-source-partition"]), int(headers["dead-letter-source-offset"]))
        cause = headers["dead-letter-cause"]
        due = int(headers["dead-letter-due"]) if cause == UNACKNOWLEDGED else None
        found[cause, place, due] += 1
    expected: set[tuple[str, RecordId, int | None]] = {("rejected", place, None) for place in replay.rejected}
    expected |= {("refused", place, None) for place in replay.refused}
    expected |= {(UNACKNOWLEDGED, life.place, due) for life in replay.lives.values() for due in life.given_up()}
    for cause, place, due in expected - found.keys():
        yield "missing", f"command {place[0]}:{place[1]}", f"no dead letter says that it was {cause}, due {due}"
    for (cause, place, due), times in found.items():
        if times > 1:
            yield "duplicate", f"command {place[0]}:{place[1]}", f"{times} dead letters say that it was {cause}"
        if (cause, place, due) not in expected and not _may_be_given_up(replay.lives.get(place), cause, due):
            yield "wrong", f"command {place[0]}:{place[1]}", f"a dead letter says that it was {cause}"


def _may_be_given_up(life: Life | None, cause: str, due: int | None) -> bool:
    """Return whether a firing that waited for its completion may have gone without one."""
    if life is None or cause != UNACKNOWLEDGED or due is None:
        return False
    waits = life.ack_timeout is not None or life.form == "delay"
    return waits and life.completed(due) is None
