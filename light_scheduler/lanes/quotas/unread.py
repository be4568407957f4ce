"""The commands that a lane has not read yet: since when each tenant may have some, for lending tokens of rates.

Usually the next cycle reads them, and the first one tells enough. But if the first one waits for its schema, they can
wait for hours. Then only tenants that may have sent some of them lend nothing of the tokens that they earn meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from light_scheduler.lanes.incoming import Incoming
from light_scheduler.wire import CommandRecord, Dialect

MOST_LOOKED_AT = 1_000


class _Look:
    """What was found in waiting commands, which stay behind the `first` of them; instants are UTC epoch ms.

    `by_tenant` has when the first command of each tenant was recorded, `others` the first of those that may be any
    tenant's: no more are looked at behind it.
    """

    def __init__(self, first: tuple[int, int]) -> None:
        self.first = first
        self.arrived = 0
        self.count = 0
        self.last: int | None = None
        self.by_tenant: dict[str, int] = {}
        self.others: int | None = None

    def on(self, waiting: Iterator[CommandRecord], dialect: Dialect) -> None:
        """Look at those of the commands that wait that were not looked at yet."""
        for record in islice(waiting, self.count, None):
            if self.others is not None:
                return
            self._at(record, dialect)

    def _at(self, record: CommandRecord, dialect: Dialect) -> None:
        envelope = dialect.salvage(record) if self.count < MOST_LOOKED_AT else None
        self.count += 1
        self.last = record.timestamp
        if envelope is None or envelope.id is None:  # without an id, its tenant is not known either
            self.others = self.last
        else:
            self.by_tenant.setdefault(envelope.tenant, self.last)


class Unread:
    """Of one lane; to be asked when a cycle has taken its commands. A command that waits on is looked at once."""

    def __init__(self, incoming: Incoming, dialect: Dialect) -> None:
        self._incoming = incoming
        self._dialect = dialect
        self._look = _Look((0, 0))

    def since(self, tenant: str) -> int | None:
        """Return when (UTC epoch ms) the first command was recorded that may be of a tenant; None: there is none."""
        intake = self._incoming.intake
        first = next(intake.waiting(), None)
        if first is None or not self._incoming.readable.is_held:
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
