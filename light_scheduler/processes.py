"""The worker processes of a node: their number, and the settings of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import Origin, Settings
from light_scheduler.settings.values import MOST_NAME, MOST_PORT


class Process(NamedTuple):
    """One worker process of a node.

    `urls` has the addresses of all processes of the node, by number. `restarts` counts restarts of this process.
    """

    number: int
    urls: tuple[str, ...]
    restarts: int = 0


def count_of(settings: Settings, cores: int) -> int:
    """Return the number of processes that a node should have."""
    return cores if isinstance(settings.processes, str) else settings.processes


def settings_of_each(settings: Settings, count: int) -> list[Settings]:
    """Return the settings of each process of a node.

    Each process has its own data folder, port for other workers, and name in the group. The first uses the node's
    folder, like a single worker, so it keeps its copies when the number of processes changes. Raises ConfigurationError
    if there are not enough ports, or a name would be too long.
    """
    last_port = settings.web_port + count
    if last_port > MOST_PORT:
        raise ConfigurationError(
            "web_port",
            f"{count} processes need the ports from {settings.web_port} to {last_port}, and {MOST_PORT} is the last: "
            "choose a lower port or fewer processes",
        )
    name = settings.instance_id or _name_of(settings)
    if len(f"{name}-{count - 1}") > MOST_NAME:
        raise ConfigurationError(
            "instance_id", f"must leave room for the number of a process: {MOST_NAME} characters with -{count - 1}"
        )
    rebuilds = settings.rebuild_processes
    each = [
        replace(
            settings,
            processes=1,
            data_dir=settings.data_dir / str(number) if number else settings.data_dir,
            web_port=settings.web_port + 1 + number,
            instance_id=f"{name}-{number}",
            rebuild_processes=max(1, rebuilds // count) if rebuilds else 0,
        )
        for number in range(count)
    ]
    changed: Mapping[str, Origin] = {
        setting.name: "node"
        for setting in fields(settings)
        if any(getattr(own, setting.name) != getattr(settings, setting.name) for own in each)
    }
    return [own.from_origins({**settings.origins, **changed}) for own in each]


def unused_folders(settings: Settings, process: Process | None) -> list[Path]:
    """Return folders with local state that no process of this node uses, because it had more processes before.

    Only the first process, or a single worker (None), returns any.
    """
    if process is not None and process.number > 0:
        return []
    used = {str(number) for number in range(1, 1 if process is None else len(process.urls))}
    found = [each for each in settings.data_dir.iterdir() if each.name.isdecimal() and each.name not in used]
    return sorted(each for each in found if (each / settings.app_id).is_dir())


def _name_of(settings: Settings) -> str:
    """Return a name for a node from its address for other workers, which is unique within an application."""
    return f"{settings.web_host.replace(':', '-').replace('%', '-')}-{settings.web_port}"
