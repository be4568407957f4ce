"""The parts of bulk commands in progress in a partition, in order of arrival."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from light_scheduler.model import BulkPart


class BulkParts:
    """Parts by the arrival of their command, indexed by tenant."""

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
        """Return the current parts of a tenant."""
        return [self._parts[offset] for offset in self._of[tenant]] if tenant in self._of else []

    def count_of(self, tenant: str) -> int:
        """Return how many parts a tenant has."""
        return len(self._of[tenant]) if tenant in self._of else 0

    def put(self, part: BulkPart) -> None:
        """Store a part. It replaces an earlier part of the same command."""
        offset = part.command.offset
        self._parts[offset] = part
        self._of[part.command.tenant][offset] = None

    def pop(self, offset: int) -> BulkPart | None:
        """Remove a part. Return it, or None if there was none."""
        part = self._parts.pop(offset, None)
        if part is not None:
            del self._of[part.command.tenant][offset]
        return part
