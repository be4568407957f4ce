"""The overlay that a producer is about to commit, and its early way into the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes import cycles as cycles_module
from light_scheduler.lanes.lane import Lane
from light_scheduler.tables import Overlay

from .planting import replaced


@contextmanager
def known_overlays() -> Iterator[tuple[type[Lane], Callable[[TransactionalProducer], Overlay]]]:
    """Provide lanes of which the overlay that a producer is about to commit can be found."""
    latest: dict[Any, Overlay] = {}
    lanes: dict[TransactionalProducer | None, Lane] = {}

    class Remembered(Overlay):
        def __init__(self, table: Any) -> None:
            super().__init__(table)
            latest[table] = self

    class Known(Lane):
        async def _take_over(self) -> None:
            await super()._take_over()
            lanes[self._producer] = self

    with replaced(cycles_module, "Overlay", Remembered):
        yield Known, lambda producer: latest[lanes[producer].copy.table]


def apply_at_once(overlay: Overlay) -> None:
    checkpoint = overlay._table.checkpoint
    overlay.apply(changelog_offset=checkpoint.changelog_offset, complete_at=checkpoint.complete_at)
