"""The OpenAPI 3.1 document, built from the operations and from the types of requests and answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from light_scheduler.access import Right
from light_scheduler.access.tokens import TOKEN_ID
from light_scheduler.client import Receipt
from light_scheduler.model import Result
from light_scheduler.model.delay import RULE_NAME
from light_scheduler.model.tenant import TENANT_NAME
from light_scheduler.web.access.rights import RIGHTS
from light_scheduler.web.commands.batch_document import LINES_MEDIA_TYPE
from light_scheduler.web.commands.requested import OF_STARRED
from light_scheduler.web.forms.documents import ScheduleDetail
from light_scheduler.web.forms.problems import PROBLEM_MEDIA_TYPE, Problem
from light_scheduler.wire import command_schema
from light_scheduler.wire.build import FIELDS_OF
from light_scheduler.wire.fields import ID_PATTERN, ONE_ID_PATTERN, SELECTION_PATTERN
from light_scheduler.wire.time_rule import TRIGGERS

from .links import links_of
from .operations import JSON_MEDIA_TYPE, OPERATIONS, CommandBody, CommandLines, Operation

_SCHEME = "token"
_OF_A_WORKER = {"openapi", "configuration", "doctor"}
"""Paths below /api/v1 about the worker itself."""

_PATH_PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "tenant": ("Tenant of the schedules.", {"pattern": f"^{TENANT_NAME.pattern}$"}),
    "name": ("Name of the scheduler.", {"minLength": 1}),
    "token": ("Id of the token.", {"pattern": f"^{TOKEN_ID.pattern}$"}),
    "letter": ("Partition and offset of the dead letter, such as 2-15.", {"pattern": r"^[0-9]{1,9}-[0-9]{1,18}$"}),
    "id": (
        "Id of the schedule, percent-encoded. It can hold any character but control characters, slashes included.",
        {"pattern": ID_PATTERN},
    ),
}
"""Description and schema of each path parameter."""

_REQUIRED = {
    "complete": ["firing_id", "attempt"],
    "extend": ["firing_id", "attempt"],
}
"""Members of a command that only the body can set."""

_RULE_NAME = "Name of the delay rule.", {"pattern": f"^{RULE_NAME.pattern}$"}


def openapi_document(version: str, operations: Sequence[Operation] = OPERATIONS) -> dict[str, Any]:
    """Return the document for a version of the software and its operations."""
    bodies = [operation.body for operation in operations]
    commands = {_name(body): _command(body) for body in bodies if isinstance(body, CommandBody)}
    types = [operation.answer for operation in operations] + [
        body for body in bodies if not isinstance(body, CommandBody | CommandLines)
    ]
    _, schemas = msgspec.json.schema_components(
        [type for type in (*types, Problem, Receipt) if type is not None], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "light-scheduler",
            "version": version,
            "description": "Schedules for messages on Kafka. Any worker answers for the whole cluster. "
            "Instants are UTC epoch milliseconds, durations milliseconds. Once there is a token, every request "
            "needs one, but for the operations without `security`.",
        },
        "servers": [{"url": "/", "description": "Any worker."}],
        "tags": [{"name": name} for name in dict.fromkeys(map(_tag, paths))],
        "paths": paths,
        "components": {
            "schemas": {**schemas, **commands},
            "securitySchemes": {_SCHEME: {"type": "http", "scheme": "bearer"}},
        },
    }


def _tag(path: str) -> str:
    """Return the tag of a path: the kind of thing that it is about."""
    of_tenant = r"(?:tenants/{tenant}/(?!pause|resume))?"  # these two are actions on the tenant itself
    named = re.match(rf"/api/v1/{of_tenant}([a-z-]+)", path)
    return "worker" if named is None or named[1] in _OF_A_WORKER else named[1]


def _described(operation: Operation) -> dict[str, Any]:
    right = RIGHTS[operation.name]
    responses: dict[str, Any] = {str(int(done)): _done(operation, done) for done in operation.statuses}
    for status in (*sorted({*operation.problems, *_refusals(operation, right)}), None):
        responses["default" if status is None else str(int(status))] = {
            "description": "Any other error." if status is None else status.phrase,
            **_problem_headers(status),
            "content": {PROBLEM_MEDIA_TYPE: {"schema": _reference(Problem)}},
        }
    body = {} if operation.body is None else {"requestBody": _body(operation.body)}
    return {
        "operationId": operation.name,
        "tags": [_tag(operation.path)],
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_headers(operation)],
        **body,
        "security": [] if right.role is None else [{_SCHEME: []}],
        **({} if right.role is None else {"x-role": right.role, "x-all-tenants": right.all_tenants}),
        "responses": responses,
    }


def _refusals(operation: Operation, right: Right) -> set[HTTPStatus]:
    """Return the statuses of answers to requests without the right to use an operation, or without a ready worker."""
    if right.role is None:
        return set()
    # A tenant hidden from the token looks as if it did not exist, in a path as in a dry run.
    names_tenant = "{tenant}" in operation.path or isinstance(operation.body, CommandBody | CommandLines)
    hidden = {HTTPStatus.NOT_FOUND} if names_tenant or operation.name == "preview" else set()
    refused = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}
    return refused | {HTTPStatus.SERVICE_UNAVAILABLE} | hidden


def _done(operation: Operation, status: HTTPStatus) -> dict[str, Any]:
    is_empty = status is HTTPStatus.CREATED and operation.answer is None
    links = links_of(operation.name, status)
    more: dict[str, Any] = {"links": links} if links else {}
    if is_empty or status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return {"description": status.phrase, **more}
    answer = Receipt if status is HTTPStatus.ACCEPTED else operation.answer
    content = {} if answer is None else {"schema": _answer(answer, is_list=operation.is_list)}
    description = "Done." if status is HTTPStatus.OK else status.phrase
    headers = {}
    if answer in (Result, ScheduleDetail):
        headers["ETag"] = _header("Version of the schedule, if there is one: for `If-Match`.")
    if status is HTTPStatus.CREATED and answer is Result:
        headers["Location"] = _header("Path of the schedule.")
    if headers:
        more["headers"] = headers
    return {"description": description, **more, "content": {operation.media_type.partition(";")[0]: content}}


def _problem_headers(status: HTTPStatus | None) -> dict[str, Any]:
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return {"headers": {"Retry-After": _header("Seconds after which the request can be sent again.")}}
    if status is HTTPStatus.UNAUTHORIZED:
        return {"headers": {"WWW-Authenticate": _header("How to send a token.")}}
    return {}


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _answer(document: type[msgspec.Struct], *, is_list: bool) -> dict[str, Any]:
    return {"type": "array", "items": _reference(document)} if is_list else dict(_reference(document))


def _body(body: type[msgspec.Struct] | CommandBody | CommandLines) -> dict[str, Any]:
    if isinstance(body, CommandLines):
        return {"required": False, "content": {LINES_MEDIA_TYPE: {"schema": {"type": "string"}}}}  # none is no line
    if isinstance(body, CommandBody):
        schema, required = {"$ref": f"#/components/schemas/{_name(body)}"}, body.required
    else:
        schema, required = _reference(body), True
    return {"required": required, "content": {JSON_MEDIA_TYPE: {"schema": schema}}}


def _name(body: CommandBody) -> str:
    """Return a schema's name. Commands of one kind have different schemas if their paths set different fields."""
    suffix = "Many" if body.is_bulk else {0: "Command", 2: "Submission", 3: "Body"}[len(body.given_elsewhere)]
    return f"{body.command.capitalize()}{suffix}"


def _command(body: CommandBody) -> dict[str, Any]:
    """Return the schema of a command in a body, without fields that the path sets or that the response replaces."""
    needless = {*body.given_elsewhere, "reply-topic", "reply-partition", "correlation-id"}
    if body.is_bulk:
        needless.add("expected-version")
    elif body.command != "schedule":
        needless.add("labels")  # they select several schedules
    schema = command_schema(FIELDS_OF[body.command] - needless)
    if "id" in schema["properties"]:
        schema["properties"]["id"]["pattern"] = SELECTION_PATTERN if body.is_bulk else ONE_ID_PATTERN
    for name in (required := [*_REQUIRED.get(body.command, ()), *(["id"] if body.is_bulk else ())]):
        schema["properties"][name] = _given(schema["properties"][name])
    if body.command == "reschedule":
        schema["anyOf"] = [_with(schema, name) for name in ("trigger", *sorted(TRIGGERS))]
    described = {name: value for name, value in schema.items() if name not in ("$schema", "$id", "title")}
    return described | ({"required": required} if required else {})


def _with(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of an object that must have a member."""
    return {"required": [name], "properties": {name: _given(schema["properties"][name])}}


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a member that must be present, and neither null nor empty."""
    types = [type for type in schema["type"] if type != "null"]
    least = {"minProperties": 1} if "object" in types else {"minLength": 1} if "string" in types else {}
    return schema | {"type": types} | least


def _reference(document: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{document.__name__}"}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    known = _PATH_PARAMETERS | ({"name": _RULE_NAME} if _tag(operation.path) == "delays" else {})
    if operation.method != "get":
        command = operation.body.command if isinstance(operation.body, CommandBody) else None
        is_starred = command is None or command in OF_STARRED  # a DELETE has no body
        known["id"] = known["id"][0], {"pattern": ID_PATTERN if is_starred else ONE_ID_PATTERN}
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": known[name][0],
            "schema": {"type": "string", **known[name][1]},
        }
        for name in re.findall(r"{(\w+)}", operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.parameters is None:
        return []
    declared = msgspec.json.schema_components([operation.parameters])[1][operation.parameters.__name__]
    return [
        {"name": name, "in": "query", "description": schema.pop("description"), "schema": schema}
        for name, schema in declared["properties"].items()
    ]


def _headers(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in operation.headers.items()
    ]
