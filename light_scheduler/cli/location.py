"""Finds the partition in which a schedule is pending, so that its id alone is enough on the command line."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from light_scheduler.errors import ClientError
from light_scheduler.settings import Settings

from .verbosity import warn

ASK_TIMEOUT_S = 5.0


class Location(NamedTuple):
    """A partition of a commands topic, and the dialect of the topic."""

    topic: str
    partition: int | None
    dialect: str


async def place_of(settings: Settings, url: str, tenant: str, id: str) -> Location | None:
    """Return where a schedule is pending. None if nowhere, or if no worker can be asked; then a warning is printed on
    stderr.

    Raises ClientError if a worker answers but cannot tell.
    """
    from light_scheduler.web.schedule_client import ScheduleReader

    async with ScheduleReader(url, settings.web_token, settings.http_security) as reader:
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                asking = await reader.identity()
                worker = await reader.application(asking)
        except (ClientError, TimeoutError) as error:
            _warn(str(error) or f"{reader.url} did not answer within {ASK_TIMEOUT_S:g} s", id)
            return None
        if worker.app_id != settings.app_id:
            _warn(f"the worker at {reader.url} is of application {worker.app_id}, not {settings.app_id}", id)
            return None
        if asking.tenants is not None and tenant not in asking.tenants:
            _warn(f"the token may not see the schedules of tenant {tenant!r}", id)
            return None
        found = await reader.get(tenant, id)
    if found is None:
        return None
    dialect = worker.commands_topics.get(found.source.topic, "json")  # the form that every dialect accepts
    return Location(*found.place, dialect)


def _warn(why: str, id: str) -> None:
    warn(
        f"{why.removesuffix('.')}. The command is sent to the partition of key {id!r}. If the schedule "
        "has another key, name it with --key, or name a running worker with --url."
    )
