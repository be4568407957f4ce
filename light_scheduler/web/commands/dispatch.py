"""Sends a request's command to the partition where its schedule is pending, since the path only has tenant and id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from time import monotonic

from aiohttp import web

from light_scheduler.client import Receipt
from light_scheduler.client.bulk_results import BulkAnswers, answers_of
from light_scheduler.client.channel import MakeCommand
from light_scheduler.model import Outcome, Result
from light_scheduler.web.forms.documents import ScheduleDetail
from light_scheduler.web.forms.problems import ProblemError, ProblemType

from .channel import Commands
from .requested import Requested

MOST_VERSIONS = 5
"""How many versions are tried if others replace the schedule meanwhile."""

Find = Callable[[web.Request, str, str], Awaitable[ScheduleDetail | None]]
"""Finds the schedule of a tenant and an id anywhere in the cluster. Raises ProblemError if a partition does not
answer."""


class Dispatch:
    """Finds partitions and sends commands."""

    def __init__(self, commands: Commands, find: Find, topics: Sequence[str]) -> None:
        """`topics` are the commands topics that take bulk commands. Can be empty."""
        self._commands = commands
        self._find = find
        self._topics = topics

    async def placed(self, request: web.Request, command: Requested) -> Requested:
        """Return the command with the partition in which its schedule is pending.

        A command with a key keeps the partition of that key. If the schedule is not pending anywhere, its id is the
        key. Raises ProblemError if a partition did not answer.
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

    async def ask_everywhere(self, command: Requested, timeout_s: float) -> BulkAnswers:
        """Send a bulk command to all topics that take bulk commands, and wait for the results.

        Raises TooManyWaitingError; other errors are among the answers.
        """
        with self._commands.place() as sender:
            return await self._all(partial(sender.ask, timeout=timeout_s), command)

    async def send_everywhere(self, command: Requested, timeout_s: float) -> BulkAnswers:
        """Send a bulk command to all topics that take bulk commands, without waiting for the results.

        Raises as `ask_everywhere` does.
        """
        with self._commands.place() as sender:
            return await self._all(partial(sender.send, timeout=timeout_s), command)

    async def _all(self, do: Callable[[MakeCommand], Awaitable[Result | Receipt]], command: Requested) -> BulkAnswers:
        """Do something with the command of each topic at the same time."""
        placed = {topic: replace(command, place=(topic, None)) for topic in self._topics} or {"": command}
        return BulkAnswers(await answers_of({topic: do(each.record) for topic, each in placed.items()}))

    async def ask_where_it_is(self, request: web.Request, command: Requested, timeout_s: float) -> Result:
        """Place and send a command for an existing schedule, and wait for its result.

        If the schedule is not found, but has been accepted in another partition meanwhile, the command is sent once
        more.
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
        """Return the schedule that a command names; None if it is pending nowhere.

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
        """Send a placed command for a schedule that had `version`, and wait for its result.

        If the schedule has another version by then, the command is sent again for that one, up to `MOST_VERSIONS`
        times. The result is a conflict if the schedule is gone, or still changes when the time is over.
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


def nothing_to_match(command: Requested) -> ProblemError:
    """Return the error for `If-Match: *` if the schedule does not exist."""
    return ProblemError(
        HTTPStatus.PRECONDITION_FAILED,
        f"Tenant {command.tenant} has no pending schedule {command.id!r}.",
        type=ProblemType.PRECONDITION_FAILED,
    )
