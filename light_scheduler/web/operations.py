"""What can be asked over HTTP: one declaration for the routes and for OpenAPI."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal, NamedTuple

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from light_scheduler.delays import DelayView

from .documents import DelayBody, DelayList, InfoDocument, LiveDocument, ReadyDocument, ScheduleDetail, SchedulePage
from .parameters import ListParameters

JSON_MEDIA_TYPE = "application/json"


class Operation(NamedTuple):
    """A request. `name` is both its handler's and its OpenAPI operation id.

    `{...}` in the path are parameters, all text; `body` is what a JSON body has to be. An answer without a type is of
    `media_type`. `statuses` are those of answers when all went well, `problems` those of error answers.
    """

    path: str
    name: str
    summary: str
    answer: type[msgspec.Struct] | None
    media_type: str = JSON_MEDIA_TYPE
    problems: tuple[HTTPStatus, ...] = ()
    parameters: type[msgspec.Struct] | None = None
    method: Literal["get", "put", "delete"] = "get"
    body: type[msgspec.Struct] | None = None
    statuses: tuple[HTTPStatus, ...] = (HTTPStatus.OK,)


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
    Operation(
        "/api/v1/delays",
        "list_delays",
        "List all delay rules with what the workers make of them.",
        DelayList,
    ),
    Operation(
        "/api/v1/delays/{name}",
        "get_delay",
        "Show a delay rule.",
        DelayView,
        problems=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        "/api/v1/delays/{name}",
        "put_delay",
        "Add a delay rule, or replace the one of this name; it is in force when the answer comes.",
        DelayView,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE),
        method="put",
        body=DelayBody,
        statuses=(HTTPStatus.OK, HTTPStatus.CREATED),
    ),
    Operation(
        "/api/v1/delays/{name}",
        "delete_delay",
        "Remove a delay rule; what waits stays in its source topic.",
        None,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE),
        method="delete",
        statuses=(HTTPStatus.NO_CONTENT,),
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
