"""Step 2: what a decision leaves in the overlay and in the changelog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.tables import Overlay, layout

from .planting import mutant, replaced
from .unused import UNUSED, unused_records_are_skipped


@mutant(2, "An update leaves the old time in the index.")
def _update_keeps_the_old_time() -> Iterator[Any]:
    put = Overlay.put

    def beside_the_old(self: Overlay, *args: Any) -> None:
        before = dict(self._changes)
        put(self, *args)
        for key in [key for key, value in self._changes.items() if value is None and before.get(key, b"") is not None]:
            if key in before:
                self._changes[key] = before[key]
                self._fresh[layout.tenant_in(key)].add(key)
            else:
                del self._changes[key]

    with replaced(Overlay, "put", beside_the_old):
        yield None


@mutant(2, "Floors move up to now, past what is put in the same cycle.")
def _floors_overtake() -> Iterator[Any]:
    apply = Overlay.apply

    def past_now(self: Overlay, *, changelog_offset: int, complete_at: int) -> None:
        for tenant in self._fresh:
            now = layout.index_from(tenant, complete_at)
            self._floors[tenant] = max(self._floors.get(tenant) or now, now)
        self._fresh.clear()
        apply(self, changelog_offset=changelog_offset, complete_at=complete_at)

    with replaced(Overlay, "apply", past_now):
        yield None


@mutant(2, "A firing does not remove its schedule from the changelog.")
def _no_tombstone() -> Iterator[Any]:
    add = RecordBatches.add

    def silent(self: RecordBatches, target: Any, key: Any, value: Any, *args: Any, **options: Any) -> None:
        if value is None and target[0].endswith("changelog"):
            key, value = UNUSED
        add(self, target, key, value, *args, **options)

    with replaced(RecordBatches, "add", silent), unused_records_are_skipped():
        yield None
