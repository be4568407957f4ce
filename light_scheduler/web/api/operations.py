"""The operations of the HTTP API, declared once for routes and OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from light_scheduler.delays import DelayView
from light_scheduler.model import Result
from light_scheduler.model.tenant_rules import TenantRules
from light_scheduler.web.access.token_documents import (
    NewTokenDocument,
    RotateParameters,
    TokenBody,
    TokenDocument,
    TokenList,
)
from light_scheduler.web.cluster.document import ClusterDocument, IdentityDocument
from light_scheduler.web.commands.batch_document import LINES_MEDIA_TYPE, BatchAnswer
from light_scheduler.web.commands.negotiation import IF_MATCH, IF_NONE_MATCH, PREFER
from light_scheduler.web.commands.responses import ABOUT_FIRINGS, IDEMPOTENCY_KEY
from light_scheduler.web.commands.send_parameters import DeleteParameters, SendParameters
from light_scheduler.web.configuration_document import ConfigurationDocument, DoctorDocument
from light_scheduler.web.delay_documents import DelayBody, DelayList
from light_scheduler.web.dry_run import DryRunParameters
from light_scheduler.web.dry_run_document import DryRunDocument
from light_scheduler.web.events import EVENTS_MEDIA_TYPE, EventsParameters
from light_scheduler.web.forms.documents import DetailParameters, PreviewDocument, ScheduleDetail, SchedulePage
from light_scheduler.web.forms.parameters import ListParameters
from light_scheduler.web.overview_document import OverviewDocument
from light_scheduler.web.preview import PreviewParameters, RuleParameters
from light_scheduler.web.records.change_page import ChangePage
from light_scheduler.web.records.changes import ChangeParameters
from light_scheduler.web.records.dead_letter_documents import DeadLetterDetail, DeadLetterPage, RedriveDocument
from light_scheduler.web.records.dead_letters import DeadLetterParameters
from light_scheduler.web.records.history import HistoryParameters
from light_scheduler.web.records.history_page import HistoryPage
from light_scheduler.web.tenant_documents import TenantDocument, TenantList
from light_scheduler.web.upcoming.document import (
    UpcomingDocument,
    UpcomingGroupsDocument,
    UpcomingGroupsParameters,
    UpcomingParameters,
)
from light_scheduler.web.why import WhyParameters
from light_scheduler.web.why_document import WhyDocument
from light_scheduler.web.worker_documents import InfoDocument, LiveDocument, ReadyDocument

JSON_MEDIA_TYPE = "application/json"


class CommandBody(NamedTuple):
    """A JSON body: a command in the JSON form, without the fields that are in the path. Some requests can omit it."""

    command: str
    given_elsewhere: tuple[str, ...] = ("command", "tenant", "id")
    required: bool = True
    is_bulk: bool = False


class CommandLines(NamedTuple):
    """A body of JSON Lines: one command in the JSON form per line; `command` defaults to `schedule`.

    `is_streamed`: the handler reads the body while it arrives, so it can have any length.
    """

    is_streamed: bool = False


class Operation(NamedTuple):
    """A request. `name` is both its handler's name and its OpenAPI operation id.

    `{...}` in the path are text parameters. `body` is the type of a JSON body. `headers` are the optional headers, with
    their meanings. An answer is an `answer`, or a JSON array of them if `is_list`; without a type it has `media_type`.
    `statuses` are those of successful answers, `problems` those of errors.
    """

    path: str
    name: str
    summary: str
    answer: type[msgspec.Struct] | None
    media_type: str = JSON_MEDIA_TYPE
    problems: tuple[HTTPStatus, ...] = ()
    parameters: type[msgspec.Struct] | None = None
    method: Literal["get", "post", "put", "delete"] = "get"
    body: type[msgspec.Struct] | CommandBody | CommandLines | None = None
    statuses: tuple[HTTPStatus, ...] = (HTTPStatus.OK,)
    headers: Mapping[str, str] = MappingProxyType({})
    is_list: bool = False


_SENDING = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.NOT_IMPLEMENTED,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""Problems that any command can cause."""


_IF_MATCH = {
    IF_MATCH: 'ETag that the schedule must have: its version, such as "4". `*`: any version, but it must be pending. '
    "Otherwise the answer is 412."
}
_IF_ABSENT = {IF_NONE_MATCH: "`*`: only if no schedule of this id is pending. Otherwise the answer is 412."}
_PREFER = {PREFER: "`wait=5`: wait 5 seconds for the answer, then respond with 202. `respond-async`: do not wait."}


def _action(command: str, summary: str, *, body_required: bool = False) -> Operation:
    return Operation(
        f"/api/v1/tenants/{{tenant}}/schedules/{{id}}/{command}",
        f"{command}_schedule",
        summary,
        Result,
        problems=(
            *_SENDING,
            HTTPStatus.NOT_FOUND,
            *(() if command in ABOUT_FIRINGS else (HTTPStatus.PRECONDITION_FAILED,)),
        ),
        parameters=SendParameters,
        method="post",
        body=CommandBody(command, required=body_required),
        statuses=(HTTPStatus.OK, HTTPStatus.ACCEPTED),
        headers=_PREFER if command in ABOUT_FIRINGS else _IF_MATCH | _PREFER,
    )


def _action_on_many(command: str, summary: str) -> Operation:
    return Operation(
        f"/api/v1/tenants/{{tenant}}/schedules:{command}",
        f"{command}_schedules",
        summary,
        Result,
        problems=_SENDING,
        parameters=SendParameters,
        method="post",
        body=CommandBody(command, given_elsewhere=("command", "tenant"), is_bulk=True),
        statuses=(HTTPStatus.OK, HTTPStatus.ACCEPTED),
        headers=_PREFER,
    )


def _tenant_action(verb: str, summary: str, *problems: HTTPStatus) -> Operation:
    return Operation(
        f"/api/v1/tenants/{{tenant}}/{verb}",
        f"{verb}_tenant",
        summary,
        TenantDocument,
        problems=(HTTPStatus.BAD_REQUEST, *problems, HTTPStatus.SERVICE_UNAVAILABLE),
        method="post",
    )


OPERATIONS = (
    Operation(
        "/api/v1/tenants/{tenant}/schedules",
        "list_schedules",
        "List the pending schedules of a tenant, in the whole cluster, page by page.",
        SchedulePage,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
        parameters=ListParameters,
    ),
    Operation(
        "/api/v1/tenants/{tenant}/upcoming",
        "upcoming",
        "Count the pending schedules of a tenant by due time, target topic and state, in the whole cluster.",
        UpcomingDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
        parameters=UpcomingParameters,
    ),
    # Before the path of the id, which matches the rest of any path.
    Operation(
        "/api/v1/tenants/{tenant}/schedules/{id}/history",
        "schedule_history",
        "Show what happened to one schedule, pending or not, the newest first.",
        HistoryPage,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
        parameters=HistoryParameters,
    ),
    Operation(
        "/api/v1/tenants/{tenant}/schedules/{id}/why",
        "why_schedule",
        "Say what happened to one schedule and why, and when it fires next, in sentences.",
        WhyDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
        parameters=WhyParameters,
    ),
    Operation(
        "/api/v1/tenants/{tenant}/schedules/{id}",
        "get_schedule",
        "Show one pending schedule.",
        ScheduleDetail,
        problems=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        parameters=DetailParameters,
        statuses=(HTTPStatus.OK, HTTPStatus.NOT_MODIFIED),
        headers={IF_NONE_MATCH: "ETag of the version that is known. If it is still that one, the answer is 304."},
    ),
    Operation(
        "/api/v1/tenants/{tenant}/schedules",
        "submit_schedule",
        "Schedule a message. The body is a command in the JSON form. Without an id, the key is the id. "
        "Without both, the schedule gets a new id.",
        Result,
        problems=(*_SENDING, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.UNPROCESSABLE_ENTITY),
        parameters=SendParameters,
        method="post",
        body=CommandBody("schedule", given_elsewhere=("command", "tenant")),
        statuses=(HTTPStatus.CREATED, HTTPStatus.OK, HTTPStatus.ACCEPTED),
        headers={IDEMPOTENCY_KEY: "Requests with the same key take effect once within an hour."} | _IF_ABSENT | _PREFER,
    ),
    Operation(
        "/api/v1/tenants/{tenant}/schedules:batch",
        "submit_schedules",
        "Schedule many messages. The body has one command in the JSON form a line, the response one answer a line, in "
        "the order of the lines, as soon as they are known.",
        BatchAnswer,
        media_type=LINES_MEDIA_TYPE,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS),
        parameters=SendParameters,
        method="post",
        body=CommandLines(is_streamed=True),
    ),
    Operation(
        "/api/v1/tenants/{tenant}/schedules/{id}",
        "put_schedule",
        "Schedule a message under this id, or replace the schedule that has it.",
        Result,
        problems=(*_SENDING, HTTPStatus.PRECONDITION_FAILED),
        parameters=SendParameters,
        method="put",
        body=CommandBody("schedule"),
        statuses=(HTTPStatus.CREATED, HTTPStatus.OK, HTTPStatus.ACCEPTED),
        headers=_IF_MATCH | _IF_ABSENT | _PREFER,
    ),
    Operation(
        "/api/v1/tenants/{tenant}/schedules/{id}",
        "delete_schedule",
        "Cancel a schedule.",
        Result,
        problems=(*_SENDING, HTTPStatus.NOT_FOUND, HTTPStatus.PRECONDITION_FAILED),
        parameters=DeleteParameters,
        method="delete",
        statuses=(HTTPStatus.OK, HTTPStatus.ACCEPTED),
        headers=_IF_MATCH | _PREFER,
    ),
    _action("pause", "Pause a schedule: it does not fire until it is resumed."),
    _action("resume", "Resume a paused schedule. Missed firings follow its misfire policy."),
    _action("trigger", "Fire a schedule now. A one-shot then does not fire at its own time; a series still does."),
    _action(
        "reschedule",
        "Change when a schedule fires, by a whole new rule: bounds, jitter, window and misfire policy included.",
        body_required=True,
    ),
    _action("complete", "Report a firing as completed or failed.", body_required=True),
    _action("extend", "Report that a firing is still being processed: its time-out begins anew.", body_required=True),
    _action_on_many(
        "cancel", "Cancel all schedules that an id ending in * and labels select. The answer has their number."
    ),
    _action_on_many("pause", "Pause all selected schedules."),
    _action_on_many("resume", "Resume all selected schedules."),
    _action_on_many("trigger", "Fire all selected schedules now."),
    _action_on_many("reschedule", "Change when all selected schedules fire."),
    Operation(
        "/api/v1/dead-letters",
        "list_dead_letters",
        "List rejected commands and firings that could not be delivered, the newest first.",
        DeadLetterPage,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
        parameters=DeadLetterParameters,
    ),
    Operation(
        "/api/v1/dead-letters/{letter}",
        "get_dead_letter",
        "Show one dead letter, with its bytes.",
        DeadLetterDetail,
        problems=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        parameters=DetailParameters,
    ),
    Operation(
        "/api/v1/dead-letters/{letter}/redrive",
        "redrive_dead_letter",
        "Send a dead letter again: a command to its commands topic, a firing to its target.",
        RedriveDocument,
        problems=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        method="post",
    ),
    Operation(
        "/api/v1/preview",
        "preview",
        "Show when a schedule would fire. The trigger is in the query string.",
        PreviewDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS),
        parameters=RuleParameters,
    ),
    Operation(
        "/api/v1/preview",
        "preview_command",
        "Show when a schedule would fire. The body is a command in the JSON form, without a target.",
        PreviewDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS),
        parameters=PreviewParameters,
        method="post",
        body=CommandBody("schedule", given_elsewhere=(), required=False),
    ),
    Operation(
        "/api/v1/dry-run",
        "dry_run",
        "Show what commands would deliver and when, and which would be refused. Nothing is sent.",
        DryRunDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS),
        parameters=DryRunParameters,
        method="post",
        body=CommandLines(),
    ),
    Operation(
        "/api/v1/delays",
        "list_delays",
        "List all delay rules with their state and progress.",
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
        "Add a delay rule, or replace the one with this name. The rule is active when the response arrives.",
        DelayView,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE),
        method="put",
        body=DelayBody,
        statuses=(HTTPStatus.OK, HTTPStatus.CREATED),
    ),
    Operation(
        "/api/v1/delays/{name}",
        "delete_delay",
        "Remove a delay rule. Waiting records stay in its source topic.",
        None,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE),
        method="delete",
        statuses=(HTTPStatus.NO_CONTENT,),
    ),
    Operation("/api/v1/tenants", "list_tenants", "List the tenants that have rules, or are stopped.", TenantList),
    Operation(
        "/api/v1/tenants/{tenant}",
        "get_tenant",
        "Show the rules and the state of a tenant.",
        TenantDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
    ),
    Operation(
        "/api/v1/tenants/{tenant}",
        "put_tenant",
        "Replace the rules of a tenant. Its state stays the same.",
        TenantDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE),
        method="put",
        body=TenantRules,
        statuses=(HTTPStatus.OK, HTTPStatus.CREATED),
    ),
    _tenant_action(
        "pause",
        "Pause a tenant: its schedules do not fire until you resume it. Its commands still take effect.",
        HTTPStatus.CONFLICT,
    ),
    _tenant_action(
        "resume", "Resume a tenant that is paused, or undo its deletion. Schedules that were removed stay removed."
    ),
    Operation(
        "/api/v1/tenants/{tenant}",
        "delete_tenant",
        "Delete a tenant: all of its schedules are removed, and its commands are rejected.",
        TenantDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE),
        method="delete",
    ),
    Operation(
        "/api/v1/changes",
        "list_changes",
        "List changes of tenants, tokens and delay rules, by whom and from where, the newest first.",
        ChangePage,
        problems=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        parameters=ChangeParameters,
    ),
    Operation("/api/v1/tokens", "list_tokens", "List the tokens of this API, without their secrets.", TokenList),
    Operation(
        "/api/v1/tokens",
        "create_token",
        "Create a token. Its secret is in this answer only.",
        NewTokenDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE),
        method="post",
        body=TokenBody,
        statuses=(HTTPStatus.CREATED,),
    ),
    Operation(
        "/api/v1/tokens/{token}/rotate",
        "rotate_token",
        "Give a token a new secret. The old one stays valid for a time.",
        NewTokenDocument,
        problems=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        parameters=RotateParameters,
        method="post",
    ),
    Operation(
        "/api/v1/tokens/{token}",
        "revoke_token",
        "Revoke a token permanently.",
        TokenDocument,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
        method="delete",
    ),
    Operation(
        "/api/v1/cluster",
        "cluster",
        "Show all workers, their partitions, and which of them do not answer. At most one second old.",
        ClusterDocument,
    ),
    Operation(
        "/api/v1/overview",
        "overview",
        "Count what is pending in the whole cluster, and show its last hour. At most one second old.",
        OverviewDocument,
    ),
    Operation(
        "/api/v1/upcoming",
        "upcoming_groups",
        "Count the pending schedules of all tenants by due time, and by tenant, target topic or partition.",
        UpcomingGroupsDocument,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
        parameters=UpcomingGroupsParameters,
    ),
    Operation(
        "/api/v1/events",
        "events",
        "Send the overview, or the state of the cluster, every two seconds as server-sent events.",
        None,
        media_type=EVENTS_MEDIA_TYPE,
        problems=(HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS),
        parameters=EventsParameters,
    ),
    Operation(
        "/api/v1/configuration",
        "configuration",
        "Show the settings of this worker, and where each comes from. Secrets are masked.",
        ConfigurationDocument,
    ),
    Operation(
        "/api/v1/doctor",
        "doctor",
        "Check broker, topics, rights, access, clock and disk where this worker runs. At most ten seconds old.",
        DoctorDocument,
    ),
    Operation(
        "/api/v1/identity",
        "identity",
        "Show the name, role and tenants of the token, and the application that it is for.",
        IdentityDocument,
    ),
    Operation("/api/v1/openapi.json", "openapi", "This description.", None),
    Operation("/live", "live", "Check that the process answers.", LiveDocument),
    Operation(
        "/ready",
        "ready",
        "Check that every partition assigned to this worker, or to any process of its node, runs.",
        ReadyDocument,
        problems=(HTTPStatus.SERVICE_UNAVAILABLE,),
    ),
    Operation(
        "/info", "info", "Show this worker, its partitions, and the partitions of the other workers.", InfoDocument
    ),
    Operation(
        "/metrics",
        "metrics",
        "Metrics of this worker, or of all processes of its node, for Prometheus.",
        None,
        media_type=CONTENT_TYPE_LATEST,
    ),
    Operation("/", "index", "The dashboard, for browsers.", None, media_type="text/html"),
)
