"""What can be asked over HTTP: one declaration for the routes and for OpenAPI."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from .documents import InfoDocument, LiveDocument, ReadyDocument, ScheduleDetail, SchedulePage
from .parameters import ListParameters

JSON_MEDIA_TYPE = "application/json"


class Operation(NamedTuple):
    """A GET. `name` is both its handler's and its OpenAPI operation id; an answer without a type is of `media_type`.

    `{...}` in the path are parameters, all text. `problems` are the statuses of its error answers.
    """

    path: str
    name: str
    summary: str
    answer: type[msgspec.Struct] | None
    media_type: str = JSON_MEDIA_TYPE
    problems: tuple[HTTPStatus, ...] = ()
    parameters: type[msgspec.Struct] | None = None


OPERATIONS = (
    Operation(
        "/api/v1/tenants/{tenant}/schedules",
        "list_schedules",
        "List a tenant's schedules, of the whole cluster, page by page.",
        SchedulePage,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE),
        parameters=ListParameters,
    ),
    Operation(
        "/api/v1/tenants/{tenant}/schedules/{id}",
        "get_schedule",
        "Show one schedule, wherever in the cluster it is.",
        ScheduleDetail,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
    ),
    Operation("/api/v1/openapi.json", "openapi", "This description.", None),
    Operation("/live", "live", "Tell whether the process answers.", LiveDocument),
    Operation(
        "/ready",
        "ready",
        "Tell whether every partition assigned to this worker runs.",
        ReadyDocument,
        problems=(HTTPStatus.SERVICE_UNAVAILABLE,),
    ),
    Operation("/info", "info", "Show what this worker is and runs, and who runs the rest.", InfoDocument),
    Operation("/metrics", "metrics", "This worker's metrics for Prometheus.", None, media_type=CONTENT_TYPE_LATEST),
    Operation("/", "index", "A page with links to all this.", None, media_type="text/html"),
)
