"""Rules out schedules that cannot match a query by their stored bytes, so that a search decodes few rows.

Records are MessagePack, which has text as UTF-8 bytes. So a row without the bytes of a label does not have that label.
A row with these bytes may have them elsewhere, such as in its payload, so it must be decoded to be sure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from . import layout


class Traits(NamedTuple):
    """Bytes that every match has in its id and in its record.

    `id_begins` is the index of the id in a position, which is a time-index key (see `layout`).
    """

    id_begins: int
    id_prefix: bytes
    id_contains: bytes
    texts: tuple[bytes, ...]

    @classmethod
    def of(cls, tenant: str, id_prefix: str, id_contains: str, texts: Iterable[str]) -> Traits:
        """Return the traits of a tenant's schedules with these texts in id and record."""
        return cls(
            len(layout.tenant_from(tenant)) + layout.TIME_BYTES,
            id_prefix.encode(),
            id_contains.encode(),
            tuple(text.encode() for text in sorted(texts, key=len, reverse=True) if text),  # the rarest first
        )

    def are_in(self, position: bytes, value: bytes) -> bool:
        """Return whether the row at a position may match."""
        return self.are_in_id(position) and (
            not self.texts or value.startswith(layout.PROGRESS_ONLY) or all(map(value.__contains__, self.texts))
        )

    def are_in_id(self, position: bytes) -> bool:
        """Return whether the id of a position may match."""
        return position.startswith(self.id_prefix, self.id_begins) and (
            not self.id_contains or position.find(self.id_contains, self.id_begins) >= 0
        )
