"""Bulk commands in progress: a part in each partition, and a total in the partition that received the command."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .command import ControlCommand, RescheduleCommand, Selection
from .outcome import Requester

BulkCommand = ControlCommand | RescheduleCommand
"""Commands that can have a selection."""


class BulkPart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A bulk command in progress in one partition. It arrived there at `command.offset` (see `arrival`).

    `origin_partition` and `origin_offset` are the partition and arrival of the original record. Schedules are visited
    by id. Those up to `after` are done, and `changed` of them were changed.
    """

    command: BulkCommand
    origin_partition: int
    origin_offset: int
    after: str = ""
    changed: int = 0
    token: str = ""
    """Must be in the report to the total."""
    requester: Requester | None = None
    """The requester over HTTP."""

    @property
    def selection(self) -> Selection:
        """The selection of schedules to change."""
        assert self.command.selection is not None
        return self.command.selection


class BulkTotal(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The result of a bulk command so far: number of schedules `changed`, and partitions whose reports are `awaited`.

    It is in the partition that received the command.
    """

    command: BulkCommand
    awaited: tuple[int, ...]
    changed: int = 0
    token: str = ""
    """Only reports with this token are counted."""
    requester: Requester | None = None
    """The requester over HTTP."""

    @property
    def without(self) -> tuple[int, ...]:
        """The partitions that have not reported, or have reported a failure."""
        return self.awaited


class ScopedPart(BulkPart, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A part for schedules that were in the partition `former` before the topic grew.

    That partition is the origin of these parts and has their total (`SubTotal`).
    """

    former: int = 0


class SubTotal(BulkTotal, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The total of a former partition for its schedules, wherever they are now. It is reported to the parent.

    In the partition that received the command, it is the total itself, and has no parent.
    """

    parent_partition: int = 0
    parent_offset: int = 0
    parent_token: str = ""


class LackingTotal(SubTotal, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A total of either kind, with partitions reported as `missing`.

    These partitions have failed to execute the command, or a sub-total has given them up.
    """

    missing: tuple[int, ...] = ()

    @property
    def without(self) -> tuple[int, ...]:
        return tuple(sorted({*self.awaited, *self.missing}))


def lacking(total: BulkTotal, missing: Iterable[int]) -> LackingTotal:
    """Return a total with more partitions reported as missing."""
    fields = {name: getattr(total, name) for name in total.__struct_fields__}
    known: tuple[int, ...] = fields.pop("missing", ())
    return LackingTotal(**fields, missing=tuple(sorted({*known, *missing})))


SUB_TOTAL = 1 << 62
"""The arrival of a bulk command plus this is the number of the `SubTotal` next to its total."""
