"""The right that each operation needs. An operation that is missing here is not served."""

from __future__ import annotations

from collections.abc import Mapping

from light_scheduler.access import Right, Role

OPEN = Right(None)
"""No token needed."""

_READ, _WRITE = Right(Role.READ), Right(Role.WRITE)
"""For the tenant in the path, or any tenant if the path has none."""

_READ_ALL, _ADMIN = Right(Role.READ, all_tenants=True), Right(Role.ADMIN, all_tenants=True)
_METRICS = Right(Role.METRICS, all_tenants=True)

OF_RAW_PAYLOADS = frozenset(
    {"etf1_planned", "etf1_search", "etf1_get", "etf1_search_live", "etf1_get_live", "light4j_tasks"}
)
"""Operations that return payloads as they were sent, in the formats of other schedulers."""

RIGHTS: Mapping[str, Right] = {
    # Health probes, which have no token.
    "live": OPEN,
    "ready": OPEN,
    "etf1_liveness": OPEN,
    # Browsers exchange a token for a cookie here.
    "login": OPEN,
    "log_in": OPEN,
    "log_out": OPEN,
    # One tenant's schedules.
    "get_tenant": _READ,
    "list_schedules": _READ,
    "upcoming": _READ,
    "get_schedule": _READ,
    "schedule_history": _READ,
    "why_schedule": _READ,
    "submit_schedule": _WRITE,
    "submit_schedules": _WRITE,
    "put_schedule": _WRITE,
    "delete_schedule": _WRITE,
    "pause_schedule": _WRITE,
    "resume_schedule": _WRITE,
    "trigger_schedule": _WRITE,
    "reschedule_schedule": _WRITE,
    "complete_schedule": _WRITE,
    "extend_schedule": _WRITE,
    "cancel_schedules": _WRITE,
    "pause_schedules": _WRITE,
    "resume_schedules": _WRITE,
    "trigger_schedules": _WRITE,
    "reschedule_schedules": _WRITE,
    # Only for the tenants of the token: letters of others are treated as if they did not exist.
    "list_dead_letters": _READ,
    "get_dead_letter": _READ,
    "redrive_dead_letter": _WRITE,
    # Only the counts of the token's tenants.
    "overview": _READ,
    "events": _READ,
    # Only the tasks of the token's tenants.
    "light4j_tasks": _READ,
    "light4j_send": _WRITE,
    # Computations that read no schedule. The tenants in a body must be visible to the token.
    "preview": _READ,
    "preview_command": _READ,
    "dry_run": _READ,
    "openapi": _READ,
    "identity": _READ,
    "index": _READ,
    "dashboard_file": _READ,
    # Figures and names of all tenants.
    "info": _READ_ALL,
    "cluster": _READ_ALL,
    "metrics": _METRICS,
    "upcoming_groups": _READ_ALL,
    "list_tenants": _READ_ALL,
    "list_delays": _READ_ALL,
    "get_delay": _READ_ALL,
    # Traffic between workers; the handler refuses everyone else.
    "take_rates": OPEN,
    # The read API of etf1 counts the schedules of all tenants.
    "etf1_planned": _READ_ALL,
    "etf1_stats": _READ_ALL,
    "etf1_schedulers": _READ_ALL,
    "etf1_search": _READ_ALL,
    "etf1_get": _READ_ALL,
    "etf1_search_live": _READ_ALL,
    "etf1_get_live": _READ_ALL,
    "etf1_search_history": _READ_ALL,
    "etf1_get_history": _READ_ALL,
    # Changes of the token's tenants. Changes of no tenant or of several need a token for all tenants.
    "list_changes": Right(Role.ADMIN),
    # Settings of the whole cluster.
    "put_delay": _ADMIN,
    "delete_delay": _ADMIN,
    "put_tenant": _ADMIN,
    "pause_tenant": _ADMIN,
    "resume_tenant": _ADMIN,
    "delete_tenant": _ADMIN,
    "list_tokens": _ADMIN,
    "create_token": _ADMIN,
    "rotate_token": _ADMIN,
    "revoke_token": _ADMIN,
    # A worker's settings and environment.
    "configuration": _ADMIN,
    "doctor": _ADMIN,
}
