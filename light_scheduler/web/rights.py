"""The right that each operation needs. An operation that is missing in this table is not served."""

from __future__ import annotations

from collections.abc import Mapping

from light_scheduler.access import Right, Role

OPEN = Right(None)
"""Anybody, without a token."""

_READ, _WRITE = Right(Role.READ), Right(Role.WRITE)
"""For the tenant in the path; without one, of any tenant."""

_READ_ALL, _ADMIN = Right(Role.READ, all_tenants=True), Right(Role.ADMIN, all_tenants=True)
_METRICS = Right(Role.METRICS, all_tenants=True)

OF_RAW_PAYLOADS = frozenset(
    {"etf1_planned", "etf1_search", "etf1_get", "etf1_search_live", "etf1_get_live", "light4j_tasks"}
)
"""Operations whose answers have payloads as they were sent, in the forms of other schedulers."""

RIGHTS: Mapping[str, Right] = {
    # Probes of a supervisor, which has no token.
    "live": OPEN,
    "ready": OPEN,
    "etf1_liveness": OPEN,
    # Browsers get a cookie for a token here.
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
    # Of the tenants of the token: a letter of another one looks as if it were not there.
    "list_dead_letters": _READ,
    "get_dead_letter": _READ,
    "redrive_dead_letter": _WRITE,
    # The counts of the tenants of the token.
    "overview": _READ,
    "events": _READ,
    # The tasks of the tenants of the token.
    "light4j_tasks": _READ,
    "light4j_send": _WRITE,
    # Reckoning that reads no schedule; the tenants that a body names have to be visible.
    "preview": _READ,
    "preview_command": _READ,
    "dry_run": _READ,
    "openapi": _READ,
    "identity": _READ,
    "index": _READ,
    "dashboard_file": _READ,
    # The figures and names of all tenants.
    "info": _READ_ALL,
    "cluster": _READ_ALL,
    "metrics": _METRICS,
    "upcoming_groups": _READ_ALL,
    "list_tenants": _READ_ALL,
    "list_delays": _READ_ALL,
    "get_delay": _READ_ALL,
    # What workers say to each other; the handler takes it from nobody else.
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
    # Of the tenants of the token; what is about none or several is for a token for all of them.
    "list_changes": Right(Role.ADMIN),
    # What holds for the whole cluster.
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
    # Where a worker runs, and with what.
    "configuration": _ADMIN,
    "doctor": _ADMIN,
}
