"""Links of the OpenAPI document: follow-up requests about an answer, for programs and tools."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

_DONE = (HTTPStatus.OK, HTTPStatus.CREATED)


class _Linked(NamedTuple):
    """Operations about the object in an answer, and where the answer has their parameters."""

    operations: tuple[str, ...]
    parameters: Mapping[str, str]


def _body(**members: str) -> dict[str, str]:
    """Return parameters that are members of the answer, as JSON Pointers."""
    return {name: f"$response.body#/{pointer}" for name, pointer in members.items()}


def _path(*names: str) -> dict[str, str]:
    """Return parameters that the request already has in its path."""
    return {name: f"$request.path.{name}" for name in names}


_LOOKING = ("get_schedule", "schedule_history", "why_schedule")
_CHANGING = (
    "put_schedule",
    "delete_schedule",
    "pause_schedule",
    "resume_schedule",
    "trigger_schedule",
    "reschedule_schedule",
)
_SCHEDULE = _Linked((*_LOOKING, *_CHANGING), _body(tenant="tenant", id="id"))
_SCHEDULES = _Linked(
    (
        "submit_schedule",
        "submit_schedules",
        "cancel_schedules",
        "pause_schedules",
        "resume_schedules",
        "trigger_schedules",
        "reschedule_schedules",
        "list_schedules",
        "upcoming",
    ),
    _path("tenant"),
)
_TENANT = _Linked(("get_tenant", "put_tenant", "pause_tenant", "resume_tenant", "delete_tenant"), _path("tenant"))
_PAUSED_TENANT = _Linked(("get_tenant", "resume_tenant", "delete_tenant"), _path("tenant"))
_DELETED_TENANT = _Linked(("get_tenant", "resume_tenant"), _path("tenant"))
_DELAY = _Linked(("get_delay", "put_delay", "delete_delay"), _path("name"))
_TOKEN = _Linked(("rotate_token", "revoke_token"), _body(token="about/id"))  # nosec B106 # no secret
_LETTER = ("get_dead_letter", "redrive_dead_letter")

_LINKED: Mapping[str, tuple[_Linked, ...]] = {
    **dict.fromkeys(("submit_schedule", *_CHANGING, "get_schedule"), (_SCHEDULE,)),
    "list_schedules": (_Linked(_LOOKING, _body(tenant="schedules/0/tenant", id="schedules/0/id")), _SCHEDULES),
    "upcoming": (_SCHEDULES,),
    **dict.fromkeys(("put_tenant", "get_tenant", "resume_tenant"), (_TENANT, _SCHEDULES)),
    "pause_tenant": (_PAUSED_TENANT,),
    "delete_tenant": (_DELETED_TENANT,),
    "list_tenants": (_Linked(("get_tenant",), _body(tenant="tenants/0/name")),),
    **dict.fromkeys(("put_delay", "get_delay"), (_DELAY,)),
    "list_delays": (_Linked(("get_delay",), _body(name="delays/0/name")),),
    **dict.fromkeys(("create_token", "rotate_token"), (_TOKEN,)),
    "list_dead_letters": (_Linked(_LETTER, _body(letter="dead_letters/0/letter")),),
    **dict.fromkeys(("get_dead_letter", "redrive_dead_letter"), (_Linked(_LETTER, _body(letter="letter")),)),
    "light4j_send": (_Linked(("light4j_tasks",), {"host": "$request.body#/host", "name": "$request.body#/name"}),),
    "etf1_schedulers": (_Linked(("etf1_search", "etf1_search_live", "etf1_search_history"), _body(name="0/name")),),
    **{
        f"etf1_search{view}": (_Linked((f"etf1_get{view}",), _path("name") | _body(id="schedules/0/schedule/id")),)
        for view in ("", "_live", "_history")
    },
}


def links_of(operation: str, status: HTTPStatus) -> dict[str, Any]:
    """Return the links of an operation's answer with a given status, by the operations that they lead to."""
    if status not in _DONE:
        return {}
    return {
        name: {"operationId": name, "parameters": dict(linked.parameters)}
        for linked in _LINKED.get(operation, ())
        for name in linked.operations
    }
