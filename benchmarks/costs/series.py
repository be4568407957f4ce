"""`forecast` of recurring schedules, a month ahead: half fire each hour, half by one of 2,880 crons."""

from __future__ import annotations

from collections.abc import Iterator

from light_scheduler.model import TopicNames
from light_scheduler.pipeline import forecast, importing

from .cost import Cost, Workspace, cost_of
from .waiting import table_of

MONTH_MS = 30 * 86_400_000
ZONES = (b"Europe/Zurich", b"UTC")


def costs(place: Workspace, rows: int) -> Iterator[Cost]:
    """Yield the cost of a forecast for a month; the preceding import is not measured."""
    imported = table_of(place, rows, _timing)
    importing.main(place.spark, imported)
    looking = forecast.ForecastOptions(
        place.cluster,
        TopicNames(imported.app_id),
        imported.commands_topics,
        ahead=MONTH_MS,
        page=str(place.folder / "forecast.html"),
        table=place.table("forecast"),
    )
    yield cost_of("forecast of series", rows, lambda: forecast.main(place.spark, looking).schedules)


def _timing(number: int) -> list[tuple[str, bytes]]:
    if number % 2 == 0:
        return [("schedule-every", b"1h")]
    minute, hour, zone = number // 2 % 60, number // 120 % 24, ZONES[number // 2_880 % 2]
    return [("schedule-cron", b"%d %d * * *" % (minute, hour)), ("schedule-timezone", zone)]
