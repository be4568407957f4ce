"""What can be asked next about an answer, as links of the OpenAPI document: programs and tools follow them."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

_DONE = (HTTPStatus.OK, HTTPStatus.CREATED)


class _Linked(NamedTuple):
    """Operations that are about what an answer names, and where it has their path parameters."""

    operations: tuple[str, ...]
    parameters: Mapping[str, str]


_SCHEDULE = _Linked(
    (
        "get_schedule",
        "put_schedule",
        "delete_schedule",
        "pause_schedule",
        "resume_schedule",
        "trigger_schedule",
        "reschedule_schedule",
        "schedule_history",
        "why_schedule",
    ),
    {"tenant": "$response.body#/tenant", "id": "$response.body#/id"},
)

_LINKED: Mapping[str, _Linked] = {
    **dict.fromkeys(("submit_schedule", "put_schedule", "delete_schedule"), _SCHEDULE),
    "put_tenant": _Linked(
        ("get_tenant", "pause_tenant", "resume_tenant", "delete_tenant"), {"tenant": "$request.path.tenant"}
    ),
    "put_delay": _Linked(("get_delay", "delete_delay"), {"name": "$request.path.name"}),
    "create_token": _Linked(("rotate_token", "revoke_token"), {"token": "$response.body#/about/id"}),
}


def links_of(operation: str, status: HTTPStatus) -> dict[str, Any]:
    """Return the links of an operation's answer of a status, by the operations that they lead to."""
    linked = _LINKED.get(operation)
    if linked is None or status not in _DONE:
        return {}
    return {name: {"operationId": name, "parameters": dict(linked.parameters)} for name in linked.operations}
