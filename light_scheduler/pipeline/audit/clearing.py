"""Clears what most schedules are, without a replay: plain one-shots that were asked for once, and delivered so.

Such a schedule has four records. Three of them follow from its command and from the two instants at which it was
accepted and fired: what lanes would have written is built as columns (`canonical`), and compared with what is there.
Any other schedule goes through the replay, which alone says what is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.engine.firing import MINUTE_MS
from light_scheduler.model import EventType
from light_scheduler.pipeline.lag import LAG_MS
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.firing import LAST_HEADERS

from .canonical import HistoryLines, PlainCommands, after_delays, at_instants, digits, headers_digests, joined, packed
from .evidence import COMMAND, HISTORY, SEEN
from .header_lists import HeaderLists, Mask, Numbers, each_value, mask_of
from .terms import Terms

_KINDS = (COMMAND, HISTORY, HISTORY, SEEN)
"""Records of a plain one-shot: its command, that it was scheduled, that it was fired, and its message."""

_WHOSE = ("tenant", "id")
_INSTANT = "^[1-9][0-9]{12}$"
_AT = '"at":(?P<at>[1-9][0-9]{12}),'
_SCHEDULED, _FIRED = HistoryLines(EventType.SCHEDULED), HistoryLines(EventType.FIRED)


class Cleared(NamedTuple):
    """Schedules of a batch that are cleared: when each fired (UTC epoch ms), and how late (ms).

    `handled` has, by topic and lane, the offset of the last of their commands.
    """

    fired_at: Numbers
    late: Numbers
    handled: dict[tuple[str, int], int]


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
    """Schedules with the records of a plain one-shot, a column for each value. Instants are UTC epoch ms.

    `commands` are the commands as the messages have them, `values` the values of command and history. `headers` are
    the last ones of the messages, and `has_more`: there are others of the scheduler's among those before them.
    `sizes` is how many records each schedule has.
    """

    sizes: Numbers
    commands: PlainCommands
    commands_topic: pa.Array
    origin: pa.Array
    values: tuple[pa.Array, ...]
    accepted_at: Numbers
    due: Numbers
    fired_at: Numbers
    delivered_at: Numbers
    headers: tuple[tuple[pa.Array, pa.Array], ...]
    has_more: Mask

    @property
    def begun(self) -> Numbers:
        """Since when each was pending; delays count from then."""
        begun: Numbers = np.minimum(self.commands.recorded_at.to_numpy(), self.accepted_at)
        return begun

    @property
    def late(self) -> Numbers:
        """How many ms later than possible each fired."""
        return self.fired_at - np.maximum(self.due, self.begun)

    def has(self, header: str, value: pa.Array | bytes) -> Mask:
        """Tell whose messages have a header of a value."""
        _, values = self.headers[LAST_HEADERS.index(header)]
        return mask_of(pc.equal(values, value))


def _has_command(of: Candidates) -> Mask:
    command, commands = of.values[0], of.commands
    is_same = mask_of(pc.equal(command, packed(commands)))
    if not is_same.all():
        delayed = commands._replace(timing=after_delays(pa.array(of.due - of.begun)))
        is_same |= mask_of(pc.equal(command, packed(delayed)))
    return is_same


def _has_line(of: Candidates, value: pa.Array, lines: HistoryLines, at: Numbers) -> Mask:
    return mask_of(pc.equal(value, lines.of(of.commands, pa.array(of.due), pa.array(at))))


def _has_names(of: Candidates) -> Mask:
    has_names = np.ones(len(of.due), np.bool_)
    for (names, _), name in zip(of.headers, LAST_HEADERS, strict=True):
        has_names &= mask_of(pc.equal(names, CONTROL_PREFIX + name))
    return has_names


def _delivery_ids(of: Candidates) -> pa.Array:
    commands = of.commands
    source = joined(of.commands_topic, b":", digits(commands.partition), b":", digits(commands.offset))
    return joined(source, b":1:1:", digits(pa.array(of.due)), b":1")


def _reach(of: Candidates, terms: Terms) -> Mask:
    rules = terms.rules
    if rules.lookback_minutes is None or rules.beyond == "fire":
        return np.ones(len(of.due), np.bool_)
    return of.fired_at // MINUTE_MS - of.due // MINUTE_MS <= rules.lookback_minutes


def _has_target(of: Candidates, terms: Terms) -> Mask:
    starts = each_value(of.commands.topic, lambda topic: terms.horizon.targets.get(topic.decode()), pa.int64())
    is_whole = mask_of(pc.less_equal(starts, pa.array(of.fired_at)))
    return is_whole | (of.delivered_at <= of.fired_at + LAG_MS)


CHECKS: dict[str, Callable[[Candidates, Terms], Mask]] = {
    "no other record": lambda of, _: of.sizes == len(_KINDS),
    "not passed on": lambda of, _: mask_of(of.origin.is_null()),
    "command": lambda of, _: _has_command(of),
    "scheduled": lambda of, _: _has_line(of, of.values[1], _SCHEDULED, of.accepted_at),
    "fired": lambda of, _: _has_line(of, of.values[2], _FIRED, of.fired_at),
    "names": lambda of, _: _has_names(of),
    "no more": lambda of, _: ~of.has_more,
    "firing-id": lambda of, _: of.has("firing-id", joined(of.commands.id, b"@", digits(pa.array(of.due)))),
    "sequence": lambda of, _: of.has("sequence", b"1"),
    "attempt": lambda of, _: of.has("attempt", b"1"),
    "version": lambda of, _: of.has("version", b"1"),
    "source-topic": lambda of, _: of.has("source-topic", of.commands_topic),
    "source-partition": lambda of, _: of.has("source-partition", digits(of.commands.partition)),
    "source-offset": lambda of, _: of.has("source-offset", digits(of.commands.offset)),
    "delivery-id": lambda of, _: of.has("delivery-id", _delivery_ids(of)),
    "fired when due": lambda of, _: of.fired_at >= of.due,
    "delivered when due": lambda of, _: of.delivered_at >= of.due,
    "in time": lambda of, terms: of.late <= terms.bounds.patience,
    "lookback": _reach,
    "over": lambda of, terms: np.maximum(of.accepted_at, of.fired_at) <= terms.bounds.end,
    "target": _has_target,
}
"""All that is compared. A schedule is cleared if every one of these holds."""


def without_cleared(batches: Iterable[pa.RecordBatch], terms: Terms) -> Iterator[tuple[pa.RecordBatch, Cleared]]:
    """Yield sorted rows of evidence without those of schedules that are cleared, and what there is to say of these.

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
    firsts, of = _candidates(groups, np.logical_and.reduce([groups.is_whole, *kinds]))
    is_clear = np.ones(len(firsts), np.bool_)
    for check in CHECKS.values():
        is_clear &= check(of, terms)
    is_left = np.ones(groups.batch.num_rows, np.bool_)
    for place in range(len(_KINDS)):
        is_left[firsts[is_clear] + place] = False
    commands = groups.batch.select(["topic", "lane", "offset"]).take(pa.array(firsts[is_clear]))
    last = pa.Table.from_batches([commands]).group_by(["topic", "lane"]).aggregate([("offset", "max")])
    handled = {(row["topic"], row["lane"]): row["offset_max"] for row in last.to_pylist()}
    return groups.batch.filter(pa.array(is_left)), Cleared(of.fired_at[is_clear], of.late[is_clear], handled)


def _candidates(groups: Groups, chosen: Mask) -> tuple[Numbers, Candidates]:
    """Return where the chosen schedules begin whose values have the usual form, and these values."""
    batch, firsts, sizes = groups.batch, groups.firsts[chosen], groups.sizes[chosen]
    lists = HeaderLists.of(batch.column("headers").take(pa.array(firsts + _KINDS.index(SEEN))))
    begins = lists.ends - len(LAST_HEADERS)
    is_usual = lists.lengths >= len(LAST_HEADERS)
    due, fired_at = (_taken(lists.values, begins + LAST_HEADERS.index(name)) for name in ("due", "fired-at"))
    at = pc.struct_field(pc.extract_regex(batch.column("value").take(pa.array(firsts + 1)), _AT), "at")
    for instant in (due, fired_at):
        is_usual &= mask_of(pc.match_substring_regex(instant, _INSTANT))
    is_usual &= mask_of(at.is_valid())
    usual = pa.array(is_usual)
    users = np.arange(len(lists.names)) < begins[lists.owners]
    ours = np.bincount(lists.owners[lists.beginning_with(CONTROL_PREFIX) & users], minlength=len(begins))
    digests = headers_digests(lists, users).filter(usual)
    firsts, begins = firsts[is_usual], begins[is_usual]
    due, fired_at, at = (_instants(column.filter(usual)) for column in (due, fired_at, at))
    values = batch.drop_columns(["headers"])
    command, scheduled, fired, message = (values.take(pa.array(firsts + place)) for place in range(len(_KINDS)))
    tenant, id = (command.column(name).cast(pa.binary()) for name in _WHOSE)
    commands = PlainCommands(
        tenant,
        id,
        key=message.column("key"),
        timing=at_instants(due),
        topic=message.column("topic").cast(pa.binary()),
        payload=message.column("value"),
        headers=digests,
        partition=command.column("partition"),
        offset=command.column("offset"),
        recorded_at=command.column("timestamp"),
    )
    places = [begins + place for place in range(len(LAST_HEADERS))]
    return firsts, Candidates(
        sizes[is_usual],
        commands,
        commands_topic=command.column("topic").cast(pa.binary()),
        origin=command.column("key"),
        values=tuple(each.column("value") for each in (command, scheduled, fired)),
        accepted_at=at.to_numpy(),
        due=due.to_numpy(),
        fired_at=fired_at.to_numpy(),
        delivered_at=message.column("timestamp").to_numpy(),
        headers=tuple((_taken(lists.names, place), _taken(lists.values, place)) for place in places),
        has_more=ours[is_usual] > 0,
    )


def _taken(column: pa.Array, places: Numbers) -> pa.Array:
    return column.take(pa.array(places, mask=places < 0))


def _instants(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.string()).cast(pa.int64())
