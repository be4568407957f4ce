"""This worker's own client of the commands topic, for commands that arrive over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from typing import Protocol

from light_scheduler.client import NotDelivered, Receipt
from light_scheduler.client.channel import Channel, ChannelTopics, MakeCommand
from light_scheduler.errors import BrokerError
from light_scheduler.model import Result
from light_scheduler.settings import Settings
from light_scheduler.web.limits.shares import HOLDER, Shares
from light_scheduler.wire import CommandRecord

from .errors import TooManyWaitingError

MOST_WAITING = 1_000
"""Number of commands in progress: waiting for the scheduler's answer or the broker's acknowledgement. One tenant may
have half. It is below the number of connections, so that other tenants reach this limit at all."""

REST_AFTER_S = 30.0
"""How long results are still read after the last awaited one. An idle worker does not read them."""

CLOSE_TIMEOUT_S = 5.0
"""How long a stopping worker waits for the broker to acknowledge commands."""

_RECORD_EXTRA_BYTES = 1 << 20
"""Room in a record for everything but the payload."""

log = logging.getLogger(__name__)


class Followed(Protocol):
    """Committed records of a topic as they arrive. Iterate it only once; it does not end. `close` it after use."""

    def __aiter__(self) -> AsyncIterator[CommandRecord]: ...

    async def close(self) -> None: ...


class Sender(Protocol):
    """Sends commands within a reserved place."""

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        """Send a command and wait for its result. Raises BrokerError, or ResultTimeout; the command will still be
        carried out."""
        ...

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        """Send a command without waiting for its result. Raises BrokerError; NotAcknowledged if the command may still
        be sent."""
        ...


class Commands(Protocol):
    """Sends commands and receives their results."""

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        """Send a command and wait for its result.

        Raises TooManyWaitingError, BrokerError, or ResultTimeout; the command will still be carried out.
        """
        ...

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        """Send a command without waiting for its result.

        Raises TooManyWaitingError, BrokerError.
        """
        ...

    def place(self) -> AbstractContextManager[Sender]:
        """Reserve a place for several commands that belong together, so that none of them is refused halfway.

        Entering it raises TooManyWaitingError.
        """
        ...

    async def follow(self, topic: str, timeout: float) -> Followed:
        """Return a reader of all records of a topic, from its beginning on. Raises BrokerError."""
        ...

    async def close(self) -> None:
        """Disconnect. Requests that still wait for an answer fail."""
        ...


class CommandChannel:
    """A channel that connects with the first command. `close` it at the end."""

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
        with self.place() as sender:
            return await sender.ask(make, timeout)

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        with self.place() as sender:
            return await sender.send(make, timeout)

    @contextmanager
    def place(self) -> Iterator[Sender]:
        holder = HOLDER.get()
        if not self._under_way.has_room(holder):
            raise TooManyWaitingError
        with self._under_way.holding(holder):
            yield _PlacedSender(self)

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

    async def ask_in_place(self, make: MakeCommand, timeout: float) -> Result:
        """Send a command within a reserved place, and wait for its result."""
        self._waiting += 1
        try:
            channel = await self._channel(timeout)
            return await channel.ask(make, timeout)
        finally:
            self._rest_after_answer()

    async def send_in_place(self, make: MakeCommand, timeout: float) -> Receipt:
        """Send a command within a reserved place."""
        channel = await self._channel(timeout)
        return await channel.send(make(None), timeout)

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
                    ChannelTopics(self._settings.default_input.name, self._settings.topics.results),
                    close_timeout=CLOSE_TIMEOUT_S,
                    max_request_bytes=largest_record(self._settings),
                )
                self._opened = await self._exit.enter_async_context(channel)
            return self._opened


class _PlacedSender:
    """Sends commands within a reserved place."""

    def __init__(self, channel: CommandChannel) -> None:
        self._channel = channel

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        return await self._channel.ask_in_place(make, timeout)

    async def send(self, make: MakeCommand, timeout: float) -> Receipt:
        return await self._channel.send_in_place(make, timeout)


def largest_record(settings: Settings) -> int:
    """Return the maximum size of a record that a request can produce, bytes."""
    return largest_body(settings) + _RECORD_EXTRA_BYTES


def largest_body(settings: Settings) -> int:
    """Return the maximum size of a request, bytes: the largest payload as base64, and room for the rest."""
    return settings.max_payload_bytes * 4 // 3 + _RECORD_EXTRA_BYTES
