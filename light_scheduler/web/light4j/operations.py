"""The operations of light-4j's endpoint: its own path and names."""

from __future__ import annotations

from http import HTTPStatus

from light_scheduler.web.api.operations import Operation

from .documents import TaskDefinition
from .handlers import TaskParameters
from .sending import TaskBody

LIGHT4J_OPERATIONS = (
    Operation(
        "/schedulers",
        "light4j_tasks",
        "List the tasks of light-4j, of the whole cluster, by host and name.",
        TaskDefinition,
        problems=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        parameters=TaskParameters,
        is_list=True,
    ),
    Operation(
        "/schedulers",
        "light4j_send",
        "Store or delete a task of light-4j.",
        None,
        problems=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        method="post",
        body=TaskBody,
        statuses=(HTTPStatus.CREATED,),
    ),
)
