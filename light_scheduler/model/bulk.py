"""Bulk commands in progress: a part in each partition, and a total in the partition that the command was sent to."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .command import ControlCommand, RescheduleCommand, Selection
from .outcome import Requester

BulkCommand = ControlCommand | RescheduleCommand
"""Commands that may have a selection."""


class BulkPart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A bulk command in progress in one partition; its record there is at `command.partition` and `command.offset`.

    `origin_partition` and `origin_offset` name the original record. Schedules are visited in order of their ids: those
    up to `after` are done, and `changed` of them have changed.
    """

    command: BulkCommand
    origin_partition: int
    origin_offset: int
    after: str = ""
    changed: int = 0
    token: str = ""
    """A report to the total has to carry it."""
    requester: Requester | None = None
    """Who asked for it over HTTP."""

    @property
    def selection(self) -> Selection:
        """Which schedules it is for."""
        assert self.command.selection is not None
        return self.command.selection


class BulkTotal(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The result of a bulk command so far: schedules `changed`, and partitions whose reports are `awaited`.

    It is in the partition that the command was sent to.
    """

    command: BulkCommand
    awaited: tuple[int, ...]
    changed: int = 0
    token: str = ""
    """A report has to carry it to be counted."""
    requester: Requester | None = None
    """Who asked for it over HTTP."""

    @property
    def without(self) -> tuple[int, ...]:
        """The partitions that have not reported, or not that they have carried it out."""
        return self.awaited


class ScopedPart(BulkPart, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A part for the schedules that were in the partition `former` before the topic grew.

    That partition has the total of all such parts (`SubTotal`), and is their origin.
    """

    former: int = 0


class SubTotal(BulkTotal, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What a former partition counts for its schedules, wherever they are. It reports that to the total.

    In the partition that the command was sent to it is the total, and has no parent.
    """

    parent_partition: int = 0
    parent_offset: int = 0
    parent_token: str = ""


class LackingTotal(SubTotal, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A total of either kind to which it was reported that partitions are `missing`.

    Those have failed to carry it out, or a total below has given them up.
    """

    missing: tuple[int, ...] = ()

    @property
    def without(self) -> tuple[int, ...]:
        return tuple(sorted({*self.awaited, *self.missing}))


def lacking(total: BulkTotal, missing: Iterable[int]) -> LackingTotal:
    """Return a total to which it was reported that partitions are missing, maybe beside others."""
    fields = {name: getattr(total, name) for name in total.__struct_fields__}
    known: tuple[int, ...] = fields.pop("missing", ())
    return LackingTotal(**fields, missing=tuple(sorted({*known, *missing})))


SUB_TOTAL = 1 << 62
"""Added to the offset of a bulk command: the number of the `SubTotal` beside its total."""
