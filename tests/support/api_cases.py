"""Requests that schemathesis makes from an OpenAPI document, and what every answer to them has to be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

with warnings.catch_warnings():  # of the libraries that it is made of
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS

HSTS = "Strict-Transport-Security"
SECURITY_HEADERS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    HSTS: "max-age=31536000",
}
EVENT_STREAM = "text/event-stream"
CHECKED = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
MAY_HAPPEN_ANYWHERE = {400, 404, 413, 414, 415, 431}
"""Refusals of what is no request for an operation, such as a path that decodes to another one."""
NO_FAILURE = {501, 503, 504}
"""Answers of a worker that cannot do something, or not just then."""


@schemathesis.serializer("application/x-ndjson")
def as_lines(context: Any, value: Any) -> Any:
    """Write a body of JSON Lines: text as it is."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def operations(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the operations of a document, but for streams of events: their answers do not end."""
    schema: Any = schemathesis.openapi.from_dict(dict(document))
    for found in schema.get_all_operations():
        operation = found.ok()
        if EVENT_STREAM not in operation.definition.raw["responses"].get("200", {}).get("content", {}):
            yield operation


def cases(operation: Any, count: int, *, is_valid: bool) -> list[Any]:
    """Return up to `count` requests for an operation, the same in every run; none if all requests are valid."""
    made: list[Any] = []
    mode = GenerationMode.POSITIVE if is_valid else GenerationMode.NEGATIVE

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def keep(case: Any) -> None:
        made.append(case)

    try:
        keep()
    except Unsatisfiable:
        return []
    return made


def check_answer(case: Any, response: Any) -> None:
    """Hold an answer to the document, and to what every answer of a worker has to be."""
    case.validate_response(response, checks=[CHECKS.get_one(name) for name in CHECKED])
    status, told = response.status_code, f"{case.operation.label}: {response.status_code} {response.text[:500]}"
    documented = {int(each) for each in case.operation.definition.raw["responses"] if each != "default"}
    assert status in documented | MAY_HAPPEN_ANYWHERE, told
    assert status < 500 or status in NO_FAILURE, told
    headers = {name: ", ".join(values) for name, values in response.headers.items()}
    expected = SECURITY_HEADERS | ({} if response.request.url.startswith("https:") else {HSTS: None})
    assert {name: headers.get(name.lower()) for name in SECURITY_HEADERS} == expected, told
    assert "frame-ancestors 'none'" in headers["content-security-policy"], told
    if status >= 400:
        assert headers["content-type"] == "application/problem+json", told
