"""The rights that each job of the pipeline needs on topics, groups and transactional ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

from light_scheduler.settings import Settings

from .rights import Operation, Right

Job = Literal["load", "import", "export", "archive", "audit", "report", "forecast"]
JOBS: tuple[Job, ...] = get_args(Job)

READERS = Right("group", "light-scheduler-pipeline", ("Describe",))
"""Reading through our Kafka format looks up the coordinator of this group. Nothing is stored in it."""

SINCE_LAST = Right("group", "light-scheduler-audit-", ("Read",), "prefixed")
"""Needed only by `audit --since-last`."""

WITH_TARGETS: frozenset[Job] = frozenset({"import", "audit"})
"""Jobs that need rights on target topics."""

LOAD_NAME = "light-scheduler-load"
"""The default name of a load. Its transactional ids begin with it."""


def job_rights(job: Job, settings: Settings, targets: Collection[str] = ()) -> list[Right]:
    """Return the rights that a job needs. `targets` are the target topics of its schedules."""
    return _RIGHTS[job](settings, targets)


def _load(settings: Settings, _: Collection[str]) -> list[Right]:
    commands = [source.name for source in settings.inputs if source.dialect == "native"][:1]
    return [
        *_topics(commands, "Write"),
        *_topics([settings.topics.loads], "Read", "Write"),
        READERS,
        Right("transactional-id", LOAD_NAME, ("Write",), "prefixed"),
    ]


def _import(settings: Settings, targets: Collection[str]) -> list[Right]:
    return [
        *_topics(_commands(settings), "Describe"),
        *_topics(_changelogs(settings), "Read", "Write"),
        *_topics(targets, "Describe"),
        READERS,
        Right("group", settings.app_id, ("Describe",)),
        Right("group", f"{settings.app_id}-import", ("Read",)),
    ]


def _snapshots(settings: Settings, _: Collection[str]) -> list[Right]:
    """Return the rights of `export` and `forecast`, which read the same topics in the same way."""
    return [*_topics(_changelogs(settings), "Read", "DescribeConfigs"), READERS]


def _archive(settings: Settings, _: Collection[str]) -> list[Right]:
    names = settings.topics
    return [*_topics([*_commands(settings), names.history, names.results, names.dead_letters], "Read"), READERS]


def _audit(settings: Settings, targets: Collection[str]) -> list[Right]:
    names = settings.topics
    return [
        *_topics([*_commands(settings), names.history, names.dead_letters, *targets], "Read", "DescribeConfigs"),
        READERS,
        SINCE_LAST,
    ]


def _report(settings: Settings, _: Collection[str]) -> list[Right]:
    return [*_topics([settings.topics.history], "Read"), READERS]


_RIGHTS: Mapping[Job, Callable[[Settings, Collection[str]], list[Right]]] = {
    "load": _load,
    "import": _import,
    "export": _snapshots,
    "archive": _archive,
    "audit": _audit,
    "report": _report,
    "forecast": _snapshots,
}


def _topics(names: Iterable[str], *operations: Operation) -> list[Right]:
    return [Right("topic", name, operations) for name in dict.fromkeys(names)]


def _commands(settings: Settings) -> Sequence[str]:
    return [source.name for source in settings.inputs]


def _changelogs(settings: Settings) -> Sequence[str]:
    return [settings.topics.changelog(name) for name in _commands(settings)]
