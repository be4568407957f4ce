"""The parts of bulk commands that are at work in a partition, in the order in which they arrived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from light_scheduler.model import BulkPart


class BulkParts:
    """Parts by the offset of their command, and by its tenant: nobody has to look at those of others."""

    def __init__(self, parts: Iterable[BulkPart]) -> None:
        self._parts: dict[int, BulkPart] = {}
        self._of: defaultdict[str, dict[int, None]] = defaultdict(dict)
        for part in parts:
            self.put(part)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __getitem__(self, offset: int) -> BulkPart:
        return self._parts[offset]

    def get(self, offset: int) -> BulkPart | None:
        return self._parts.get(offset)

    def of(self, tenant: str) -> list[BulkPart]:
        """Return a tenant's parts as they are now."""
        return [self._parts[offset] for offset in self._of[tenant]] if tenant in self._of else []

    def count_of(self, tenant: str) -> int:
        """Return how many parts a tenant has."""
        return len(self._of[tenant]) if tenant in self._of else 0

    def put(self, part: BulkPart) -> None:
        """Keep a part, in the place of the one of its command if there is one."""
        offset = part.command.offset
        self._parts[offset] = part
        self._of[part.command.tenant][offset] = None

    def pop(self, offset: int) -> BulkPart | None:
        """Keep a part no longer; return it, if it was there."""
        part = self._parts.pop(offset, None)
        if part is not None:
            del self._of[part.command.tenant][offset]
        return part
