"""The operations of etf1's API: its own paths and names."""

from __future__ import annotations

from http import HTTPStatus

from light_scheduler.web.api.operations import Operation

from .documents import Etf1Info, Found, Planned, Scheduler, SearchResult, Totals
from .search import SearchParameters

_READING = (HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_NAMING = (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
_LOOKING_BACK = (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)

_SCHEDULES = "/scheduler/{name}/schedules"
_SCHEDULE = "/scheduler/{name}/schedule/{id}"

ETF1_OPERATIONS = (
    Operation(
        "/liveness",
        "etf1_liveness",
        "Check that the process answers, as etf1's probes do.",
        None,
        media_type="text/plain",
    ),
    Operation(
        "/schedules",
        "etf1_planned",
        "List this worker's own schedules of etf1 that are due until the end of the day, UTC, in no order.",
        Planned,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS),
        is_list=True,
    ),
    Operation(
        "/api/stats",
        "etf1_stats",
        "Count the schedules of etf1, of the whole cluster.",
        Totals,
        problems=_READING,
        is_list=True,
    ),
    Operation(
        "/api/schedulers", "etf1_schedulers", "Show the workers as one scheduler of etf1.", Scheduler, is_list=True
    ),
    Operation(
        f"/api{_SCHEDULES}",
        "etf1_search",
        "Search the schedules of etf1, of the whole cluster.",
        SearchResult,
        problems=_READING,
        parameters=SearchParameters,
    ),
    Operation(
        f"/api{_SCHEDULE}",
        "etf1_get",
        "Show the schedules of etf1 that have an id; partitions and topics may each have one.",
        Found,
        problems=_NAMING,
        is_list=True,
    ),
    Operation(
        f"/api/live{_SCHEDULES}",
        "etf1_search_live",
        "Search the schedules of etf1 that are due until the end of the day, UTC.",
        SearchResult,
        problems=_READING,
        parameters=SearchParameters,
    ),
    Operation(
        f"/api/live{_SCHEDULE}",
        "etf1_get_live",
        "Show the schedules of etf1 that have an id and are due until the end of the day, UTC.",
        Found,
        problems=_NAMING,
        is_list=True,
    ),
    Operation(
        f"/api/history{_SCHEDULES}",
        "etf1_search_history",
        "Search what was delivered, in the newest records of the history topic.",
        SearchResult,
        problems=_READING,
        parameters=SearchParameters,
    ),
    Operation(
        f"/api/history{_SCHEDULE}",
        "etf1_get_history",
        "Show what was delivered of an id, by the newest records of the history topic, the newest first.",
        Found,
        problems=_LOOKING_BACK,
        is_list=True,
    ),
)


def with_etf1(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Return the operations with those of etf1 added, and with the fields in `/info` that its admin reads."""
    informed = (each._replace(answer=Etf1Info) if each.name == "info" else each for each in operations)
    return (*informed, *ETF1_OPERATIONS)
