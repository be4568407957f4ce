"""What a client knows of a command that is in the log, before the scheduler has answered."""

from __future__ import annotations

import msgspec


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """A command that the broker has acknowledged: it will be carried out. `partition` and `offset` name its record."""

    tenant: str
    id: str
    partition: int
    offset: int
