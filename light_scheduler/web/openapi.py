"""The OpenAPI 3.1 document, made from the operations and the types that requests and answers are made of."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import msgspec

from .operations import JSON_MEDIA_TYPE, OPERATIONS, Operation
from .problems import PROBLEM_MEDIA_TYPE, Problem

_PATH_PARAMETERS = {
    "tenant": "Whose schedules.",
    "name": "The delay rule's name.",
    "id": "The schedule's id, percent-encoded: it may hold any character, slashes included.",
}


def openapi_document(version: str) -> dict[str, Any]:
    """Return the document for a version of the software."""
    types = [type for operation in OPERATIONS for type in (operation.answer, operation.body) if type is not None]
    _, schemas = msgspec.json.schema_components([*types, Problem], ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "light-scheduler",
            "version": version,
            "description": "Schedules pending on Kafka. Any worker answers for the whole cluster. "
            "Instants are UTC epoch milliseconds, durations milliseconds.",
        },
        "paths": paths,
        "components": {"schemas": dict(schemas)},
    }


def _described(operation: Operation) -> dict[str, Any]:
    answer = {} if operation.answer is None else {"schema": _reference(operation.answer)}
    media_type = operation.media_type.partition(";")[0]
    responses: dict[str, Any] = {}
    for done in operation.statuses:
        content = {} if done is HTTPStatus.NO_CONTENT else {"content": {media_type: answer}}
        responses[str(int(done))] = {"description": "Done." if done is HTTPStatus.OK else done.phrase, **content}
    for status in (*operation.problems, None):
        responses["default" if status is None else str(int(status))] = {
            "description": "Any other error." if status is None else status.phrase,
            "content": {PROBLEM_MEDIA_TYPE: {"schema": _reference(Problem)}},
        }
    body = {} if operation.body is None else {"requestBody": _body(operation.body)}
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        **body,
        "responses": responses,
    }


def _body(document: type[msgspec.Struct]) -> dict[str, Any]:
    return {"required": True, "content": {JSON_MEDIA_TYPE: {"schema": _reference(document)}}}


def _reference(document: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{document.__name__}"}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS[name],
            "schema": {"type": "string", "minLength": 1},
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
