"""`import`, `export` and `forecast` of pending schedules: nine in ten fire once, within a day.

One in twenty fires each hour, and one in twenty by cron at nine in the morning.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from light_scheduler.clock import SystemClock
from light_scheduler.model import TopicNames
from light_scheduler.pipeline import export, forecast, importing

from .cost import Cost, Workspace, cost_of
from .waiting import table_of

DAY_MS = 86_400_000


def costs(place: Workspace, rows: int) -> Iterator[Cost]:
    """Yield the costs of importing schedules into an empty application, of exporting them, and of a forecast for a
    day."""
    imported = table_of(place, rows, partial(_timing, SystemClock().now()))
    yield cost_of("import", rows, lambda: importing.main(place.spark, imported).written)
    whose: dict[str, Any] = {"app_id": imported.app_id, "commands_topics": imported.commands_topics}
    exporting = export.ExportOptions(table=place.table("exported"), cluster=place.cluster, **whose)
    yield cost_of("export", rows, lambda: export.main(place.spark, exporting).schedules)
    looking = forecast.ForecastOptions(
        place.cluster,
        TopicNames(imported.app_id),
        imported.commands_topics,
        page=str(place.folder / "forecast.html"),
        table=place.table("forecast"),
    )
    yield cost_of("forecast", rows, lambda: forecast.main(place.spark, looking).schedules)


def _timing(now: int, number: int) -> list[tuple[str, bytes]]:
    if number % 20 == 0:
        return [("schedule-every", b"1h")]
    if number % 20 == 1:
        return [("schedule-cron", b"0 9 * * *")]
    return [("schedule-at", b"%d" % (now + DAY_MS * (number % 9_973) // 9_973 + 1))]
