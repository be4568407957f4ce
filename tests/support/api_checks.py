"""All checks of schemathesis on every operation of a worker's OpenAPI document."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from light_scheduler.clock import SystemClock

from .api_workflows import SERVER_CANNOT, Topics, is_text_anyway, make_right, operation_of

with warnings.catch_warnings():  # of the libraries that it is made of
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.engine import events, from_schema
    from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER

ENDING = {"delete_tenant", "pause_tenant"}
DOOMED = "doomed"
"""The tenant that is deleted and paused: commands of such a one are refused, and other operations have some."""


def failures(
    document: Mapping[str, Any], url: str, token: str, topics: Topics, *, examples: int, borders: bool
) -> tuple[list[str], set[str]]:
    """Check all operations with so many examples, and with what is at the borders of each schema if that is asked for.

    Returns what is wrong, with the request, and the operations that were asked.
    """
    schema: Any = schemathesis.openapi.from_dict(dict(document))
    config = schema.config
    config.update(base_url=url, headers={"Authorization": f"Bearer {token}"})
    config.max_stream_events = 1
    config.phases.update(phases=["coverage", "fuzzing"] if borders else ["fuzzing"])
    for phase in (config.phases.coverage, config.phases.fuzzing):
        phase.extra_data_sources.responses = False  # a tenant that was deleted would be named again
    config.generation.update(max_examples=examples, deterministic=True, database="none")
    checks = config.checks
    checks.not_a_server_error.expected_statuses = [*checks.not_a_server_error.expected_statuses, *SERVER_CANNOT]
    accepted = checks.positive_data_acceptance
    accepted.expected_statuses = [*accepted.expected_statuses, "412"]  # If-None-Match says so of what is there
    found, asked = list[str](), set[str]()
    with _made_right(topics):
        for event in from_schema(schema).execute():
            if isinstance(event, events.NonFatalError | events.FatalError):
                found.append(repr(event))
            elif isinstance(event, events.ScenarioFinished):
                asked |= {operation_of(node.value) for node in event.recorder.cases.values()}
                found += _failures_in(event.recorder)
    return found, asked


@contextmanager
def _made_right(topics: Topics) -> Iterator[None]:
    def before_call(context: Any, case: Any, kwargs: Any) -> None:
        if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
            make_right(case, topics, SystemClock())
        if operation_of(case) in ENDING and isinstance(case.path_parameters.get("tenant"), str):
            case.path_parameters["tenant"] = DOOMED

    GLOBAL_HOOK_DISPATCHER.register_hook_with_name(before_call, "before_call")
    try:
        yield
    finally:
        GLOBAL_HOOK_DISPATCHER.unregister(before_call)


def _failures_in(recorder: Any) -> Iterator[str]:
    for id, checks in recorder.checks.items():
        case = recorder.cases[id].value
        for check in checks:
            if check.failure_info is not None and not (
                check.name == "negative_data_rejection" and is_text_anyway(case)
            ):
                request = f"{check.failure_info.failure}\n{check.failure_info.code_sample}"
                yield f"{check.name}: {case.operation.label}: {request}\n{_answer(recorder, id)}"


def _answer(recorder: Any, id: str) -> str:
    interaction = recorder.interactions.get(id)
    response = None if interaction is None else interaction.response
    return "" if response is None else f"-> {response.status_code} {response.text[:500]}"
