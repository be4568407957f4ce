"""A search of etf1's admin: which schedules, in which order, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Meta
from multidict import MultiMapping

from light_scheduler.model import LATEST_INSTANT
from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.parameters import read_parameters
from light_scheduler.wire.dialects.reading import SECOND_MS

DEFAULT_MAX = 300
MOST = 1_000

Field = Literal["timestamp", "id", "epoch"]

_FIELDS: dict[str, Field] = {"timestamp": "timestamp", "id": "id", "epoch": "epoch"}
_ORDERS = {"asc": False, "desc": True}
_TIES: dict[Field, Field] = {"timestamp": "id", "id": "timestamp", "epoch": "id"}

_Epoch = Annotated[int, Meta(ge=0, le=LATEST_INSTANT // SECOND_MS)]


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A match: its sort keys, and its `Planned` as JSON."""

    id: str
    epoch: int
    timestamp: int
    encoded: bytes


class SearchParameters(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The query string of a search."""

    schedule_id: Annotated[
        str,
        Meta(
            description="Only ids that have all of these words in them, in any case; `*` in a word stands for any "
            "characters, `-` before it for ids without it."
        ),
    ] = ""
    epoch_from: Annotated[_Epoch, Meta(description="Only those due then or later, seconds since 1970; 0: all.")] = 0
    epoch_to: Annotated[_Epoch, Meta(description="Only those due then or before, seconds since 1970; 0: all.")] = 0
    max: Annotated[
        int, Meta(description=f"Most schedules in the answer, up to {MOST}; 0: {DEFAULT_MAX}, below: {MOST}.")
    ] = 0
    sort_by: Annotated[
        str, Meta(description="`timestamp`, `id` or `epoch`, then `asc` or `desc`. Otherwise `timestamp desc`.")
    ] = ""


class Sorted(Protocol):
    """Something with the sort keys of a row."""

    @property
    def id(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    @property
    def timestamp(self) -> int: ...


S = TypeVar("S", bound=Sorted)


class Order(NamedTuple):
    """A field and its direction. Rows that are equal in it are sorted by another field, ascending."""

    field: Field = "timestamp"
    is_descending: bool = True

    def first(self, rows: Sequence[S], most: int | None) -> list[S]:
        """Return the first `most` rows in this order, or all."""
        by_tie = sorted(rows, key=attrgetter(_TIES[self.field]))
        by_tie.sort(key=attrgetter(self.field), reverse=self.is_descending)
        return by_tie[:most]


class Word(NamedTuple):
    """Pieces that an id must contain one after the other, or must not contain."""

    pieces: tuple[str, ...]
    is_wanted: bool

    def fits(self, id: str) -> bool:
        """Return whether a lower-case id matches this word."""
        place = 0
        for piece in self.pieces:
            place = id.find(piece, place)
            if place < 0:
                return not self.is_wanted
            place += len(piece)
        return self.is_wanted


class Search(NamedTuple):
    """A search. `start` and `end` are UTC epoch ms, the end not included; `most` None: all rows."""

    words: tuple[Word, ...] = ()
    start: int | None = None
    end: int | None = None
    order: Order = Order()
    most: int | None = None

    def fits(self, id: str) -> bool:
        """Return whether an id matches all words."""
        lower = id.lower() if self.words else ""
        return all(word.fits(lower) for word in self.words)

    def until(self, end: int) -> Search:
        """Return this search, limited to schedules due before an instant."""
        return self._replace(end=end if self.end is None else min(end, self.end))


def search_of(given: MultiMapping[str]) -> Search:
    """Return the search of a query string. Raises QueryError naming the invalid parameter."""
    parameters = read_parameters(SearchParameters, given)
    first, last = parameters.epoch_from, parameters.epoch_to
    if last and first > last:
        raise QueryError("epoch_to", "is before epoch_from")
    return Search(
        words=tuple(map(_word, parameters.schedule_id.lower().split())),
        start=first * SECOND_MS or None,
        end=(last + 1) * SECOND_MS if last else None,
        order=order_of(parameters.sort_by),
        most=min(MOST, parameters.max or DEFAULT_MAX) if parameters.max >= 0 else MOST,
    )


def order_of(text: str) -> Order:
    """Return the order that a text names, by default `timestamp desc`. Field and direction can each be omitted."""
    names = text.lower().split()
    if len(names) == 1 and names[0] in _ORDERS:
        return Order(is_descending=_ORDERS[names[0]])
    field, order, *_ = [*names, "", ""]
    return Order(_FIELDS.get(field, "timestamp"), _ORDERS.get(order, True))


def _word(text: str) -> Word:
    sign = text[0] if len(text) > 1 and text[0] in "+-" else ""
    return Word(tuple(filter(None, text.removeprefix(sign).split("*"))), is_wanted=sign != "-")
