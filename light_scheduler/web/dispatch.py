"""Sending a request's command to where its schedule is pending: the path names a schedule by tenant and id alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from time import monotonic

from aiohttp import web

from light_scheduler.client import Receipt
from light_scheduler.client.bulk_results import of_all_topics
from light_scheduler.model import Outcome, Result

from .command_channel import Commands
from .documents import ScheduleDetail
from .problems import ProblemError, ProblemType
from .requested import Requested

MOST_VERSIONS = 5
"""How many versions are tried of a schedule that others replace meanwhile."""

Find = Callable[[web.Request, str, str], Awaitable[ScheduleDetail | None]]
"""Finds the schedule of a tenant and an id wherever in the cluster it is. Raises ProblemError if it cannot be known."""


class Dispatch:
    """Finds partitions and sends commands."""

    def __init__(self, commands: Commands, find: Find, topics: Sequence[str]) -> None:
        """`topics` are the commands topics that take bulk commands, if there are any."""
        self._commands = commands
        self._find = find
        self._topics = topics

    async def placed(self, request: web.Request, command: Requested) -> Requested:
        """Return a command that goes to the partition in which its schedule is pending.

        One with a key goes to the partition of its key, and so does one whose schedule is pending nowhere: its key is
        its id then. Raises ProblemError if a partition did not answer.
        """
        if command.has_key:
            return command
        found = await self._find(request, command.tenant, command.id)
        if found is None:
            return replace(command, place=None)
        return replace(command, place=found.place)

    async def ask(self, command: Requested, timeout_s: float) -> Result:
        """Send a placed command and wait for its result. Raises as `Commands.ask` does."""
        return await self._commands.ask(command.record, timeout_s)

    async def ask_everywhere(self, command: Requested, timeout_s: float) -> Result:
        """Send a bulk command to all topics that take some, and wait for the results. Return them as one.

        Raises as `ask` does, after all topics have answered, or have not in time.
        """
        asked = [self.ask(each, timeout_s) for each in self._everywhere(command)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        return of_all_topics([_result_of(result) for result in results])

    async def send_everywhere(self, command: Requested, timeout_s: float) -> Receipt:
        """Send a bulk command to all topics that take some; return the receipt of the first. Raises as `send` does."""
        first, *_ = [await self.send(each, timeout_s) for each in self._everywhere(command)]
        return first

    def _everywhere(self, command: Requested) -> list[Requested]:
        return [replace(command, place=(topic, None)) for topic in self._topics] or [command]

    async def ask_where_it_is(self, request: web.Request, command: Requested, timeout_s: float) -> Result:
        """Place and send a command for a schedule that is there, and wait for its result.

        One that was accepted in another partition while this command was on its way is looked for once more.
        """
        sent = await self.placed(request, command)
        result = await self.ask(sent, timeout_s)
        if result.outcome is not Outcome.NOT_FOUND or sent.has_key:
            return result
        again = await self.placed(request, sent)
        if again.place is None or again.place == sent.place:
            return result
        return await self.ask(again, timeout_s)

    async def named(self, request: web.Request, command: Requested) -> ScheduleDetail | None:
        """Return the schedule that a command names; None: it is pending nowhere.

        Raises ProblemError if a partition did not answer.
        """
        return await self._find(request, command.tenant, command.id)

    async def existing(self, request: web.Request, command: Requested) -> ScheduleDetail:
        """Return the schedule that a command names.

        Raises ProblemError if it is pending nowhere (412), or a partition did not answer.
        """
        found = await self.named(request, command)
        if found is None:
            raise nothing_to_match(command)
        return found

    async def ask_whichever_version(self, command: Requested, version: int, timeout_s: float) -> Result:
        """Send a placed command for a schedule that had a version, and wait for its result.

        Another version that it has by then will do; a schedule that has gone by then is a conflict. So is one that is
        still another one when the time is over.
        """
        ends = monotonic() + timeout_s
        for _ in range(MOST_VERSIONS):
            result = await self.ask(command.of_version(version), timeout_s)
            timeout_s = ends - monotonic()
            other = result.version
            if result.outcome is not Outcome.CONFLICT or other in (None, version) or timeout_s <= 0:
                break
            version = other
        return result

    async def send(self, command: Requested, timeout_s: float) -> Receipt:
        """Send a placed command without waiting for its result. Raises as `Commands.send` does."""
        return await self._commands.send(command.record, timeout_s)


def _result_of(result: Result | BaseException) -> Result:
    if isinstance(result, BaseException):
        raise result
    return result


def nothing_to_match(command: Requested) -> ProblemError:
    """Return what is said of `If-Match: *` for a schedule that is not there."""
    return ProblemError(
        HTTPStatus.PRECONDITION_FAILED,
        f"Tenant {command.tenant} has no pending schedule {command.id!r}.",
        type=ProblemType.PRECONDITION_FAILED,
    )
