"""The unread commands of a lane: since when each tenant may have some, for lending rate tokens.

Usually the next cycle reads them, and looking at the first one is enough. But if the first one waits for its schema,
they can wait for hours. Then only for tenants that may have sent some of them, tokens earned meanwhile are not lent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from light_scheduler.lanes.input.incoming import Incoming
from light_scheduler.wire import CommandRecord, Dialect

MOST_LOOKED_AT = 1_000


class _Look:
    """The findings about waiting commands, valid while `first` is the first of them. Instants are UTC epoch ms.

    `by_tenant` has when the first command of each tenant was recorded. `others` is when the first command of an unknown
    tenant was recorded; later commands are not looked at.
    """

    def __init__(self, first: tuple[int, int]) -> None:
        self.first = first
        self.arrived = 0
        self.count = 0
        self.last: int | None = None
        self.by_tenant: dict[str, int] = {}
        self.others: int | None = None

    def on(self, waiting: Iterator[CommandRecord], dialect: Dialect) -> None:
        """Look at the waiting commands that are new."""
        for record in islice(waiting, self.count, None):
            if self.others is not None:
                return
            self._at(record, dialect)

    def _at(self, record: CommandRecord, dialect: Dialect) -> None:
        envelope = dialect.salvage(record) if self.count < MOST_LOOKED_AT else None
        self.count += 1
        self.last = record.timestamp
        if envelope is None or envelope.id is None:  # without an id, the tenant is unknown too
            self.others = self.last
        else:
            self.by_tenant.setdefault(envelope.tenant, self.last)


class Unread:
    """The unread commands of one lane, after a cycle has taken its commands. Looks at each waiting command once."""

    def __init__(self, incoming: Incoming, dialect: Dialect) -> None:
        self._incoming = incoming
        self._dialect = dialect
        self._look = _Look((0, 0))

    def since(self, tenant: str) -> int | None:
        """Return when (UTC epoch ms) the first unread command that may be of a tenant was recorded, or None."""
        intake = self._incoming.intake
        first = next(intake.waiting(), None)
        if first is None or not self._incoming.is_held:
            return None if first is None else first.timestamp
        if self._look.first != (intake.epoch, first.offset):
            self._look = _Look((intake.epoch, first.offset))
        look = self._look
        if look.arrived != intake.next_offset:
            look.arrived = intake.next_offset
            look.on(intake.waiting(), self._dialect)
        if look.others is None and not intake.has_all:
            return look.by_tenant.get(tenant, look.last)
        return look.by_tenant.get(tenant, look.others)
