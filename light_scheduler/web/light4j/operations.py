"""The operations of light-4j's endpoint: its own path and names."""

from __future__ import annotations

from http import HTTPStatus

from light_scheduler.web.operations import Operation

from .documents import TaskDefinition
from .handlers import TaskParameters

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
)
