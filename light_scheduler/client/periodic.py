"""Periodic jobs declared in code: their declarations, and how these differ from the pending schedules. Nothing is sent
here.

A job is a schedule with two labels: `job-group`, the application that declares it, and `job-digest`, a digest of its
definition. So any number of replicas can tell that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from light_scheduler.errors import ClientError, InvalidCommand
from light_scheduler.model import Firing
from light_scheduler.wire import derived_id
from light_scheduler.wire.fields import parse_labels

from .commands import refuse_unknown, schedule_command
from .firings import first_id
from .options import ScheduleOptions, ScheduleRequest, UserHeaders
from .views import PendingSchedule

GROUP_LABEL = "job-group"
DIGEST_LABEL = "job-digest"
SYNC_TRIES = 5
"""How often the difference is computed again while others synchronise, too."""

F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = ("cron_dialect", "timezone", "topic")
_GOES_ON = "is not for periodic jobs, which go on until they are removed"
_REFUSED = {
    **dict.fromkeys(("max_firings", "end", "expected_version", "on_conflict", "paused"), _GOES_ON),
    "key": "is not for periodic jobs: `sync` finds them by their names. `target_key` is the key of their messages",
}


@dataclass(frozen=True)
class Job:
    """A declared job: its schedule, without the labels that `sync` adds."""

    name: str
    request: ScheduleRequest
    function: Callable[..., Any]
    rule: str


@dataclass(frozen=True)
class JobChange:
    """A difference: `+` is declared but not pending, `~` has changed, `-` is pending but not declared.

    `version` is that of the pending schedule.
    """

    sign: str
    name: str
    rule: str = ""
    request: ScheduleRequest | None = None
    version: int | None = None

    def __str__(self) -> str:
        version = "" if self.version is None else f"(version {self.version})"
        return " ".join(part for part in (self.sign, self.name, self.rule, version) if part)


@dataclass(frozen=True)
class SyncPlan:
    """How a group's declared jobs differ from the pending ones. Its text has a line for each change.

    `left` are names of pending jobs that are not declared, and that are kept because `remove` was not requested.
    """

    changes: tuple[JobChange, ...]
    unchanged: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        lines = [*map(str, self.changes), f"= {len(self.unchanged)} unchanged"]
        if self.left:
            lines.append(f"? {', '.join(self.left)}: not declared; remove=True cancels them")
        return "\n".join(lines)


class Jobs:
    """The jobs declared with a client's decorators."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def declare(
        self, name: str | None, rule: Mapping[str, Any], payload: bytes | None, options: ScheduleOptions
    ) -> Callable[[F], F]:
        """Return a decorator that declares a job. The name defaults to the function's.

        The decorator raises InvalidCommand for a name that is already declared, and for options that a job cannot have.
        """
        refuse_unknown(options, ScheduleOptions)
        for option, reason in _REFUSED.items():
            if option in options:
                raise InvalidCommand(option, reason)
        headers = _kept(options.get("headers"))
        request: ScheduleRequest = {**options, **rule, "headers": headers, "payload": payload}  # type: ignore[typeddict-item]
        shown = {**rule, **{option: options.get(option) for option in _SHOWN}}
        text = " ".join(f"{option}={value}" for option, value in shown.items() if value is not None)

        def register(function: F) -> F:
            job = name or function.__name__
            if job in self._jobs:
                raise InvalidCommand("name", f"{job!r} is declared twice: give one of them another name")
            self._jobs[job] = Job(job, {**request, "id": job}, function, text)
            return function

        return register

    def function_of(self, firing: Firing) -> Callable[..., Any]:
        """Return the function of the job of a firing or its retry. Raises ClientError if the job is not declared."""
        name = first_id(firing)
        if name not in self._jobs:
            raise ClientError(f"no job {name!r} is declared: `sync` with remove=True cancels those that are gone")
        return self._jobs[name].function

    def plan(self, tenant: str, group: str, pending: Iterable[PendingSchedule], *, remove: bool) -> SyncPlan:
        """Return how the declared jobs differ from a group's pending schedules. Raises InvalidCommand."""
        found = {schedule.id: schedule for schedule in pending}
        changes: list[JobChange] = []
        unchanged: list[str] = []
        for job in self._jobs.values():
            request, digest = _labelled(tenant, group, job)
            current = found.pop(job.name, None)
            if current is None:
                changes.append(JobChange("+", job.name, job.rule, request))
            elif current.labels.get(DIGEST_LABEL) == digest:
                unchanged.append(job.name)
            else:
                kept: ScheduleRequest = {**request, "paused": current.state == "paused"}
                changes.append(JobChange("~", job.name, job.rule, kept, current.version))
        if remove:
            changes += [JobChange("-", name, version=gone.version) for name, gone in found.items()]
        return SyncPlan(tuple(changes), tuple(unchanged), () if remove else tuple(found))


def _kept(headers: UserHeaders | None) -> UserHeaders:
    """Return the headers as a value that can be read repeatedly."""
    return list(headers.items() if isinstance(headers, Mapping) else headers or ())


def _labelled(tenant: str, group: str, job: Job) -> tuple[ScheduleRequest, str]:
    """Return a job's request with its labels, and its digest."""
    given = job.request.get("labels") or {}
    labels = {**(parse_labels(given) if isinstance(given, str) else given), GROUP_LABEL: group}
    command = schedule_command(tenant, {**job.request, "labels": labels})
    digest = derived_id(msgspec.msgpack.encode((command.key, command.value, command.headers)))
    return {**job.request, "labels": {**labels, DIGEST_LABEL: digest}}, digest
