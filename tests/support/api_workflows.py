"""Sequences of requests that schemathesis makes by following the links of an OpenAPI document.

A JSON Schema says what form a request has, and not which topics there are, or which fields go together. So requests
that are meant to be right get what is right there (`make_right`), and every check of schemathesis has to hold for
them. Requests that are meant to be wrong are left as they are.
"""

from __future__ import annotations

import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyStrategyDefinition

from light_scheduler.clock import Clock, SystemClock

from .api_cases import check_answer

with warnings.catch_warnings():  # of the libraries that it is made of
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS
    from schemathesis.core.parameters import ParameterLocation

AREAS = {"schedules": 3, "tenants": 3, "delays": 4, "tokens": 4}
"""Tags of the operations that links connect, and how many sequences show the most of each within seconds."""

EXPECTED = {
    "schedules": {"put_schedule"},
    "tenants": {"get_tenant", "pause_tenant", "resume_tenant"},
    "delays": {"list_delays", "get_delay", "put_delay", "delete_delay"},
    "tokens": {"create_token", "rotate_token", "revoke_token"},
}
"""Operations that sequences of an area have to succeed with, whichever sequences they are."""

LINES = "application/x-ndjson"
STOPPING = {"delete_tenant", "pause_tenant", "resume_tenant"}
STOPPED = "stopped"
"""The tenant that is stopped where sequences have operations of all tags: others are to be able to go on."""

SERVER_CANNOT = ("501", "503", "504")
"""Answers of a worker that cannot do something, or not just then."""

_TEXTS = {
    "timeout": "20s",
    "since": "2026-01-01T00:00:00Z",
    "event": ["scheduled,updated"],
    "keep": "12h",
    "expires_in": "90d",
    "If-None-Match": "*",
    "Prefer": "wait=20",
}
"""Texts of parameters and fields whose schema is that of any text."""

_HOUR_MS = 3_600_000
_SPANS = (("due_from", "due_to"), ("from", "until"))
"""Parameters that are instants, the first before the second; each has a default that depends on the time."""

_MOST_ID = 100
"""Characters: workers refuse ids that are longer than their limit."""

_OF_THE_MOMENT = {"cursor", "key", "expected_version", "If-Match"}
"""Parameters that are right for some schedules, or after some answers: links say which schedule, and not these."""


_OUTLIVING = {"schedule_history", "why_schedule", "get_tenant", "pause_tenant", "resume_tenant"}
"""Operations that succeed after a deletion: they tell how a schedule ended, and a tenant stays known, as deleted."""


class Topics(NamedTuple):
    """A commands topic of the worker, and topics of others to read from and to deliver to."""

    commands: str
    source: str
    target: str


@dataclass
class Walk:
    """Where sequences of requests go, and what came of them. `transport` are options of `requests`."""

    url: str
    token: str
    topics: Topics
    transport: Mapping[str, Any] = field(default_factory=dict)
    steps: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each operation was answered with each status."""

    prepare: Callable[[], None] = lambda: None
    """Called before each sequence: schemathesis begins with no PUT where there is a list, which leads nowhere if it is
    empty.
    """

    failures: list[BaseException] = field(default_factory=list)
    clock: Clock = field(default_factory=SystemClock)
    """The worker's."""

    keeps_tenants: bool = False
    """Whether tenants other than STOPPED are not stopped, and have no rules by which commands could be refused."""

    @property
    def credentials(self) -> dict[str, str]:
        """The headers that every request has, unless a check leaves them out."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def succeeded(self) -> set[str]:
        """The operations that did what they were asked for."""
        return {name for name, status in self.steps if status < 300}

    def follow(self, document: Mapping[str, Any], area: str | None, *, sequences: int, steps: int) -> None:
        """Play sequences of requests of an area. Raises the failure of the first that has any.

        None stands for all areas, with requests that are meant to be right: those that are not lead nowhere.

        A worker keeps what earlier sequences made. Hypothesis, which plays some beginnings again, ends when that shows.
        """
        schema: Any = schemathesis.openapi.from_dict(dict(document))
        schema = schema if area is None else schema.include(tag=area)
        schema.config.phases.stateful.inference.algorithms = []  # the document's own links
        if area is None:
            schema.config.generation.update(modes=[GenerationMode.POSITIVE])
        checks = schema.config.checks
        checks.not_a_server_error.expected_statuses = [*checks.not_a_server_error.expected_statuses, *SERVER_CANNOT]
        accepted = checks.positive_data_acceptance
        accepted.expected_statuses = [*accepted.expected_statuses, "412"]  # If-None-Match says so of what is there
        machine = type("Workflow", (_Checked, schema.as_state_machine()), {"walk": self, "guarded": set()})
        with suppress(FlakyStrategyDefinition):
            machine.run(  # type: ignore[attr-defined]
                settings=settings(
                    max_examples=sequences,
                    stateful_step_count=steps,
                    derandomize=True,
                    database=None,
                    deadline=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
            )
        if self.failures:
            raise self.failures[0]


class _Checked:
    """What is done at each step of a sequence."""

    walk: Walk
    recorder: Any
    guarded: set[str]
    """Operations that refused a request without a token, and one with a wrong one: that is asked once."""

    deletes_later = False
    """Whether a deletion of this sequence was accepted, to be carried out after the answer (202)."""

    def setup(self) -> None:
        self.deletes_later = False
        self.walk.prepare()

    def before_call(self, case: Any) -> None:
        if case.meta.generation.mode is GenerationMode.POSITIVE:
            make_right(case, self.walk.topics, self.walk.clock)
        if self.walk.keeps_tenants:
            _keep_tenants(case)

    def get_call_kwargs(self, case: Any) -> dict[str, Any]:
        return {"base_url": self.walk.url, "headers": self.walk.credentials, **self.walk.transport}

    def validate_response(self, response: Any, case: Any, additional_checks: Any = None, **transport: Any) -> None:
        try:
            self._check(response, case, additional_checks, transport)
        except BaseException as error:
            self.walk.failures.append(error)
            raise

    def _check(self, response: Any, case: Any, additional_checks: Any, transport: Mapping[str, Any]) -> None:
        name = operation_of(case)
        self.walk.steps[name, response.status_code] += 1
        self.deletes_later |= case.operation.method.lower() == "delete" and response.status_code == 202
        needless = {
            "ignored_auth": name in self.guarded,
            "use_after_free": name in _OUTLIVING or self.deletes_later,
            "negative_data_rejection": is_text_anyway(case),
        }
        case.validate_response(
            response,
            additional_checks=additional_checks,
            excluded_checks=[CHECKS.get_one(check) for check, is_so in needless.items() if is_so],
            headers=self.walk.credentials,
            transport_kwargs=dict(transport),
            recorder=self.recorder,
        )
        check_answer(case, response)
        if response.status_code < 300:
            self.guarded.add(name)


def is_text_anyway(case: Any) -> bool:
    """Tell whether a body was made wrong by something else than text in place of JSON Lines: as it is sent, it is text,
    of which each line has an answer of its own.
    """
    return case.media_type == LINES and case.meta is not None and bool(case.meta.is_negative_at(ParameterLocation.BODY))


def operation_of(case: Any) -> str:
    """Return the id of a request's operation."""
    return str(case.operation.definition.raw["operationId"])


def _keep_tenants(case: Any) -> None:
    operation, tenant = operation_of(case), (case.path_parameters or {}).get("tenant")
    if operation in STOPPING and isinstance(tenant, str):
        case.path_parameters["tenant"] = STOPPED
    elif tenant == STOPPED and operation != "get_tenant":
        case.path_parameters["tenant"] = "default"
    if operation == "put_tenant" and isinstance(case.body, dict):
        case.body = {name: value for name, value in case.body.items() if name == "weight"}


def make_right(case: Any, topics: Topics, clock: Clock) -> None:
    """Have a request say what a worker with such a clock can do, where a schema only tells its form."""
    operation = operation_of(case)
    now = clock.now()
    texts: dict[str, Any] = _TEXTS | {"partition": f"{topics.commands}[0]", "label": ["team=billing"]}
    for first, last in _SPANS:
        texts |= {first: str(now), last: str(now + _HOUR_MS)}
    texts |= {"epoch-from": now // 1_000, "epoch-to": (now + _HOUR_MS) // 1_000}
    for given in (case.query, case.headers):
        for name in set(given or ()) & _OF_THE_MOMENT:
            del given[name]
        for name in set(given or ()) & texts.keys():
            given[name] = texts[name]
    if "Idempotency-Key" in (case.headers or ()):
        case.headers["Idempotency-Key"] = uuid.uuid4().hex
    if operation == "preview":
        case.query = {"after": "1h", "count": case.query.get("count", 1)}
    id = unquote(str((case.path_parameters or {}).get("id", "")))
    if len(id) > _MOST_ID:
        case.path_parameters["id"] = id = "long"
    if isinstance(case.body, dict):
        case.body = _right_body(operation, case.body, topics, id)
    elif operation in ("submit_schedules", "dry_run") and isinstance(case.body, str):
        case.body = f'{{"id": "line", "trigger": {{"after": "1h"}}, "target": {{"topic": "{topics.target}"}}}}'


def _right_body(operation: str, body: dict[str, Any], topics: Topics, id: str) -> dict[str, Any]:
    """Return a body with what is right for an operation, and as much of the generated one as can be."""
    target = topics.target
    match operation:
        case "complete_schedule" | "extend_schedule":
            return {"firing_id": f"{id}@1767225600000", "attempt": 1}
        case "reschedule_schedules":
            return {"id": "many-*", "trigger": {"after": "2h"}}
        case "cancel_schedules" | "pause_schedules" | "resume_schedules" | "trigger_schedules":
            return {"id": "many-*"}
        case "preview_command":
            return {"trigger": {"after": "1h"}}
        case "light4j_send":
            frequency = body["frequency"] | {"time": int(body["frequency"]["time"]) % 1_000 + 1}
            return body | {"topic": target, "frequency": frequency, "name": body["name"][:_MOST_ID], "start": None}
        case "submit_schedule" | "put_schedule":
            payload = body.get("payload")
            if payload is not None and "base64" in payload:
                payload = {"base64": "AP8="}
            return {"trigger": {"after": "1h"}, "target": {"topic": target}, "payload": payload}
        case "reschedule_schedule":
            return {"trigger": {"after": "2h"}}
        case "put_tenant" if body.get("default_target") is not None:
            return body | {"targets": None}
        case "put_delay":
            return {"source": topics.source, "delay": "1h", "target": target}
        case "create_token":
            given = body | {"name": "workflow", "tenants": None if body["role"] == "metrics" else ["shop"]}
            return {name: _TEXTS.get(name, value) for name, value in given.items()}
        case _:
            return {} if operation.endswith("_schedule") else body
