"""This worker's own way to the commands topic, for what is asked of it over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from typing import Protocol

from light_scheduler.client import NotDelivered, Receipt
from light_scheduler.client.channel import Channel, ChannelTopics, MakeCommand
from light_scheduler.errors import BrokerError
from light_scheduler.model import Result
from light_scheduler.settings import Settings
from light_scheduler.wire import CommandRecord

from .shares import HOLDER, Shares

MOST_WAITING = 1_000
"""Commands that this worker waits for at one time, be it for the scheduler's answer or for the broker's. A tenant may
have half of them: fewer than there may be connections, so that others get to this limit at all."""

REST_AFTER_S = 30.0
"""How long results are read on after the last one that was waited for: nobody pays for them all day."""

CLOSE_TIMEOUT_S = 5.0
"""How long the end of a worker waits for the broker to acknowledge commands."""

_RECORD_EXTRA_BYTES = 1 << 20
"""Room in a request to the broker for what is not the payload."""

log = logging.getLogger(__name__)


class TooManyWaitingError(Exception):
    """Too many commands are being sent, or wait for their answers: no more of this tenant are taken."""


class Followed(Protocol):
    """A topic's committed records as they come; iterated once, without end. `close` it."""

    def __aiter__(self) -> AsyncIterator[CommandRecord]: ...

    async def close(self) -> None: ...


class Sender(Protocol):
    """Sends commands, one after another."""

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        """Send a command without waiting for its result. Raises BrokerError: NotAcknowledged if it may still be
        sent."""
        ...


class Commands(Protocol):
    """Where commands go, and their answers come from."""

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        """Send a command and wait for its result.

        Raises TooManyWaitingError, BrokerError, and ResultTimeout: the command stands.
        """
        ...

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        """Send a command without waiting for its result.

        Raises TooManyWaitingError, BrokerError.
        """
        ...

    def place(self) -> AbstractContextManager[Sender]:
        """Hold a place among the commands that are sent, for several that belong together: none of them is refused.

        Raises TooManyWaitingError when it is entered.
        """
        ...

    async def follow(self, topic: str, timeout: float) -> Followed:
        """Return all that a topic has, and then what comes. Raises BrokerError."""
        ...

    async def close(self) -> None:
        """Disconnect. Requests that still wait for an answer fail."""
        ...


class CommandChannel:
    """A channel that connects with the first command. `close` it in the end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: Channel | None = None
        self._opening = asyncio.Lock()
        self._exit = AsyncExitStack()
        self._under_way = Shares(MOST_WAITING)
        self._waiting = 0
        self._answered = 0
        self._rest: asyncio.Task[None] | None = None

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        with self.place():
            self._waiting += 1
            try:
                channel = await self._channel(timeout)
                return await channel.ask(make, timeout)
            finally:
                self._rest_after_answer()

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        with self.place() as sender:
            return await sender.send(make, timeout)

    @contextmanager
    def place(self) -> Iterator[Sender]:
        holder = HOLDER.get()
        if not self._under_way.has_room(holder):
            raise TooManyWaitingError
        with self._under_way.holding(holder):
            yield _PlacedSender(self._channel)

    async def follow(self, topic: str, timeout: float) -> Followed:
        channel = await self._channel(timeout)
        return await channel.reader(topic, from_beginning=True)

    async def close(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            await asyncio.wait([self._rest])
        try:
            await self._exit.aclose()
        except NotDelivered as error:
            log.warning("%s", error)  # the requests that sent them have failed
        self._opened = None

    def _rest_after_answer(self) -> None:
        self._waiting -= 1
        self._answered += 1
        if self._opened is not None and (self._rest is None or self._rest.done()):
            self._rest = asyncio.create_task(self._rest_in_time(self._opened), name="light-scheduler results rest")

    async def _rest_in_time(self, channel: Channel) -> None:
        answered = -1
        while self._waiting or answered != self._answered:
            answered = self._answered
            await asyncio.sleep(REST_AFTER_S)
        await channel.rest()

    async def _channel(self, timeout: float) -> Channel:
        try:
            async with asyncio.timeout(timeout):
                return self._opened or await self._open()
        except TimeoutError:
            raise BrokerError(f"no connection to Kafka within {timeout:g} s") from None

    async def _open(self) -> Channel:
        async with self._opening:
            if self._opened is None:
                channel = Channel(
                    self._settings.connection.aiokafka(),
                    ChannelTopics(self._settings.first_input.name, self._settings.topics.results),
                    close_timeout=CLOSE_TIMEOUT_S,
                    max_request_bytes=largest_record(self._settings),
                )
                self._opened = await self._exit.enter_async_context(channel)
            return self._opened


class _PlacedSender:
    """Sends what a place is held for."""

    def __init__(self, connected: Callable[[float], Awaitable[Channel]]) -> None:
        self._connected = connected

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        channel = await self._connected(timeout)
        return await channel.send(make(None), timeout)


def largest_record(settings: Settings) -> int:
    """Return how many bytes a record may have that a request makes."""
    return largest_body(settings) + _RECORD_EXTRA_BYTES


def largest_body(settings: Settings) -> int:
    """Return how many bytes a request may have: the largest payload as base64, and room for the rest."""
    return settings.max_payload_bytes * 4 // 3 + _RECORD_EXTRA_BYTES
