"""Telling from stored bytes that a schedule cannot match a query: most rows of a search are never decoded.

Records are MessagePack, in which a text is its UTF-8 bytes. So a row without the bytes of a label has not got that
label. One with them may have them elsewhere, in its payload: only the decoded schedule tells that it matches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from . import layout


class Traits(NamedTuple):
    """Bytes that what is stored of each match has: in its id, which begins at `id_begins` of its position (see
    `layout`), and in its record."""

    id_begins: int
    id_prefix: bytes
    id_contains: bytes
    texts: tuple[bytes, ...]

    @classmethod
    def of(cls, tenant: str, id_prefix: str, id_contains: str, texts: Iterable[str]) -> Traits:
        """Return the traits of what has these texts in its id and record."""
        return cls(
            len(layout.tenant_from(tenant)) + layout.TIME_BYTES,
            id_prefix.encode(),
            id_contains.encode(),
            tuple(text.encode() for text in sorted(texts, key=len, reverse=True) if text),  # the rarest first
        )

    def are_in(self, position: bytes, value: bytes) -> bool:
        """Return whether what is stored at a position may match."""
        return self.are_in_id(position) and (
            not self.texts or value.startswith(layout.PROGRESS_ONLY) or all(map(value.__contains__, self.texts))
        )

    def are_in_id(self, position: bytes) -> bool:
        """Return whether what is at a position may match, going by its id."""
        return position.startswith(self.id_prefix, self.id_begins) and (
            not self.id_contains or position.find(self.id_contains, self.id_begins) >= 0
        )
