"""Clears most schedules without a replay: plain one-shots that were commanded once and delivered as commanded.

Such a schedule has four records, each of which claims something (`claims`). If the claims are the same, and the
instants as they should be, nothing is wrong with it. Any other schedule goes through the replay, which alone says what
is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.engine.firing_rules import MINUTE_MS
from light_scheduler.model import EventType
from light_scheduler.pipeline.lag import LAG_MS

from .claims import claimed
from .evidence import COMMAND, HISTORY, SEEN
from .handled import Queue
from .header_lists import Mask, Numbers, each_value, mask_of
from .terms import Terms

COLUMNS = ("tenant", "id", "lane", "kind", "topic", "partition", "offset", "timestamp", "claim", "due", "at")
"""The columns of evidence that are compared."""

_KINDS = (COMMAND, HISTORY, HISTORY, SEEN)
"""Records of a plain one-shot: its command, that it was scheduled, that it was fired, and its message."""

_WHOSE = ("tenant", "id")


class Cleared(NamedTuple):
    """Schedules of a batch that are cleared: when each fired (UTC epoch ms), and how late (ms).

    `carried_out` has, by topic, lane and tenant, and by partition of the history, the offsets of the lines that tell of
    their commands, and of these.
    """

    fired_at: Numbers
    late: Numbers
    carried_out: dict[tuple[Queue, int], Numbers]

    @property
    def handled(self) -> dict[Queue, int]:
        """The offset of the last command of each queue."""
        last: dict[Queue, int] = {}
        for (queue, _), offsets in self.carried_out.items():
            last[queue] = max(last.get(queue, -1), int(offsets[:, 1].max()))
        return last


class Groups(NamedTuple):
    """Rows of evidence, and where those of each schedule begin; `is_whole` tells that all of its rows are here."""

    batch: pa.RecordBatch
    firsts: Numbers
    sizes: Numbers
    is_whole: Mask

    def without_last(self) -> Groups:
        """Return all schedules but the last."""
        batch = self.batch.slice(0, int(self.firsts[-1]))
        return Groups(batch, self.firsts[:-1], self.sizes[:-1], self.is_whole[:-1])

    def kinds(self, number: int) -> Numbers:
        """Return the kind of a row of each schedule; where it has not so many, of a row of another."""
        kinds: Numbers = self.batch.column("kind").to_numpy()
        return kinds[np.minimum(self.firsts + number, len(kinds) - 1)]


class Candidates(NamedTuple):
    """Schedules with the records of a plain one-shot, and how many records each of them has."""

    sizes: Numbers
    command: pa.RecordBatch
    scheduled: pa.RecordBatch
    fired: pa.RecordBatch
    message: pa.RecordBatch

    @property
    def due(self) -> Numbers:
        return _numbers(self.message, "due")

    @property
    def fired_at(self) -> Numbers:
        return _numbers(self.message, "at")

    @property
    def delivered_at(self) -> Numbers:
        return _numbers(self.message, "timestamp")

    @property
    def accepted_at(self) -> Numbers:
        return _numbers(self.scheduled, "at")

    @property
    def begun(self) -> Numbers:
        """Since when each was pending; delays count from then."""
        begun: Numbers = np.minimum(_numbers(self.command, "timestamp"), self.accepted_at)
        return begun

    def late(self, terms: Terms) -> Numbers:
        """Return how many ms later than possible each fired."""
        ready_at = np.maximum(self.due, self.begun)
        stopped = terms.stops.each_between(self.message.column("tenant"), ready_at, self.fired_at)
        late: Numbers = self.fired_at - ready_at - stopped
        return late


def _has_line(of: Candidates, line: pa.RecordBatch, event: EventType) -> Mask:
    expected = each_value(of.message.column("topic"), lambda topic: claimed(topic, event), pa.binary())
    return mask_of(pc.equal(line.column("claim"), expected))


def _is_due(of: Candidates) -> Mask:
    command = of.command
    delayed = (_numbers(command, "at") >= 0) & (of.begun + _numbers(command, "at") == of.due)
    is_due: Mask = delayed | (_numbers(command, "due") == of.due)
    return is_due


def _reach(of: Candidates, terms: Terms) -> Mask:
    rules = terms.rules
    if rules.lookback_minutes is None or rules.beyond == "fire":
        return np.ones(len(of.due), np.bool_)
    return of.fired_at // MINUTE_MS - of.due // MINUTE_MS <= rules.lookback_minutes


def _has_target(of: Candidates, terms: Terms) -> Mask:
    starts = each_value(of.message.column("topic"), terms.horizon.targets.get, pa.int64())
    is_whole = mask_of(pc.less_equal(starts, pa.array(of.fired_at)))
    return is_whole | (of.delivered_at <= of.fired_at + LAG_MS)


CHECKS: dict[str, Callable[[Candidates, Terms], Mask]] = {
    "no other record": lambda of, _: of.sizes == len(_KINDS),
    "command": lambda of, _: mask_of(pc.equal(of.command.column("claim"), of.message.column("claim"))),
    "due": lambda of, _: _is_due(of),
    "scheduled": lambda of, _: _has_line(of, of.scheduled, EventType.SCHEDULED),
    "due of scheduled": lambda of, _: _numbers(of.scheduled, "due") == of.due,
    "fired": lambda of, _: _has_line(of, of.fired, EventType.FIRED),
    "due of fired": lambda of, _: _numbers(of.fired, "due") == of.due,
    "at of fired": lambda of, _: _numbers(of.fired, "at") == of.fired_at,
    "fired when due": lambda of, _: of.fired_at >= of.due,
    "delivered when due": lambda of, _: of.delivered_at >= of.due,
    "in time": lambda of, terms: of.late(terms) <= terms.bounds.patience,
    "lookback": _reach,
    "over": lambda of, terms: np.maximum(of.accepted_at, of.fired_at) <= terms.bounds.end,
    "target": _has_target,
}
"""All that is compared. A schedule is cleared if every one of these holds.

Not the lane: rows are sorted by it first, and command and message have the same, so the lines between them have it too.
"""


def without_cleared(batches: Iterable[pa.RecordBatch], terms: Terms) -> Iterator[tuple[pa.RecordBatch, Cleared]]:
    """Yield the tenants and ids of schedules that are not cleared, from sorted rows of evidence, and what there is to
    say of those that are.

    The rows of a schedule that may go on in the next batch wait for it, unless they are too many already.
    """
    waiting: pa.RecordBatch | None = None
    passed: tuple[str, str] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        groups = _grouped(batch if waiting is None else pa.concat_batches([waiting, batch]))
        if passed == _whose(groups.batch, 0):
            groups.is_whole[0] = False
        last, waiting, passed = int(groups.firsts[-1]), None, None
        if groups.is_whole[-1] and groups.sizes[-1] <= len(_KINDS):
            waiting = groups.batch.slice(last)
            groups = groups.without_last()
        else:
            groups.is_whole[-1] = False
            passed = _whose(groups.batch, last)
        yield _split(groups, terms)
    if waiting is not None:
        yield _split(_grouped(waiting), terms)


def _grouped(batch: pa.RecordBatch) -> Groups:
    is_first = np.ones(batch.num_rows, np.bool_)
    same = [pc.equal(batch.column(name).slice(1), batch.column(name).slice(0, batch.num_rows - 1)) for name in _WHOSE]
    is_first[1:] = ~np.logical_and.reduce([mask_of(each) for each in same])
    (firsts,) = np.nonzero(is_first)
    return Groups(batch, firsts, np.diff(firsts, append=batch.num_rows), np.ones(len(firsts), np.bool_))


def _whose(batch: pa.RecordBatch, row: int) -> tuple[str, str]:
    tenant, id = (batch.column(name)[row].as_py() for name in _WHOSE)
    return tenant, id


def _split(groups: Groups, terms: Terms) -> tuple[pa.RecordBatch, Cleared]:
    kinds = [groups.kinds(place) == kind for place, kind in enumerate(_KINDS)]
    chosen = np.logical_and.reduce([groups.is_whole, *kinds])
    firsts = groups.firsts[chosen]
    records = (groups.batch.take(pa.array(firsts + place)) for place in range(len(_KINDS)))
    of = Candidates(groups.sizes[chosen], *records)
    is_clear = np.ones(len(firsts), np.bool_)
    for check in CHECKS.values():
        is_clear &= check(of, terms)
    is_left = np.ones(len(groups.firsts), np.bool_)
    is_left[chosen] = ~is_clear
    left = groups.batch.select(_WHOSE).take(pa.array(groups.firsts[is_left]))
    return left, Cleared(of.fired_at[is_clear], of.late(terms)[is_clear], _carried_out(of, is_clear))


def _carried_out(of: Candidates, chosen: Mask) -> dict[tuple[Queue, int], Numbers]:
    queue = ["topic", "lane", "tenant"]
    columns = {name: of.command.column(name) for name in (*queue, "offset")}
    columns |= {"log": of.scheduled.column("partition"), "line": of.scheduled.column("offset")}
    table = pa.table(columns).filter(pa.array(chosen))
    by_log = table.group_by([*queue, "log"]).aggregate([("line", "list"), ("offset", "list")])
    found: dict[tuple[Queue, int], Numbers] = {}
    for row in by_log.to_pylist():
        of_one = Queue(row["topic"], row["lane"], row["tenant"])
        found[of_one, row["log"]] = np.array([row["line_list"], row["offset_list"]]).T
    return found


def _numbers(records: pa.RecordBatch, name: str) -> Numbers:
    """Return a column; null is -1."""
    numbers: Numbers = pc.fill_null(records.column(name), -1).to_numpy()
    return numbers
