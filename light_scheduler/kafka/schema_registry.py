"""Asking a schema registry for the schemas that Avro was written with.

A schema is asked for in the background, until the registry answers: what needs it waits meanwhile, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.wire.schemas import Schemas

from .retrying import Backoff

TIMEOUT_S = 5.0
FIRST_RETRY_S, LAST_RETRY_S = 0.5, 5.0
DENIED_RETRY_S = 30.0
"""After an answer that stays the same until somebody corrects a right or a password."""
WARN_AGAIN_S = 60.0
SCHEMA_NOT_FOUND = 40_403
"""The registry's own code: another 404 is of something that is no registry."""

log = logging.getLogger(__name__)


class _Refusal(msgspec.Struct):
    """The body of an error response."""

    error_code: int


class _Answer(msgspec.Struct):
    """The body of the response to `GET /schemas/ids/{id}`."""

    schema: str
    schemaType: str = "AVRO"  # noqa: N815 - the registry's name
    references: list[Any] = []


class _UnavailableError(Exception):
    """The registry does not say whether it has a schema; the text says why."""


class _DeniedError(_UnavailableError):
    """We may not ask it."""


@dataclass
class _Question:
    """A schema that is being looked up: who waits for it, and why there is no answer yet."""

    asking: asyncio.Task[None]
    callbacks: set[Callable[[], None]] = field(default_factory=set)
    trouble: str | None = None


class SchemaRegistry:
    """The schema registry as a worker uses it. Schemas that are found go into `schemas`.

    `effect` says in the log what a schema that cannot be asked for leads to.
    """

    def __init__(
        self, access: RegistryAccess, schemas: Schemas, effect: str = "Avro commands with unknown schemas wait"
    ) -> None:
        access.headers()  # a password that cannot be read is an error here, and none while commands wait
        self._access = access
        self._address = URL(access.address)
        self.schemas = schemas
        self._effect = effect
        self._session: aiohttp.ClientSession | None = None
        self._open: dict[int, _Question] = {}
        self._warned_at: float | None = None  # of trouble, if there is any (monotonic, s)

    def ask_for(self, id: int, callback: Callable[[], None]) -> None:
        """Look a schema up; call `callback` when it is known whether there is one."""
        if id not in self._open:
            self._open[id] = _Question(asyncio.create_task(self._look_up(id), name=f"schema {id}", context=Context()))
        self._open[id].callbacks.add(callback)

    async def trouble_getting(self, id: int, timeout_s: float) -> str | None:
        """Look a schema up and wait for the answer; return why there is none in time, or None."""
        answered = asyncio.Event()
        self.ask_for(id, answered.set)
        try:
            async with asyncio.timeout(timeout_s):
                await answered.wait()
        except TimeoutError:
            return self.trouble_with(id) or "the schema registry does not answer in time"
        finally:
            self.forget(answered.set)
        return None

    def trouble_with(self, id: int) -> str | None:
        """Return why a schema that is asked for is not known yet, if it is not for lack of time."""
        question = self._open.get(id)
        return None if question is None else question.trouble

    def forget(self, callback: Callable[[], None]) -> None:
        """Do not call `callback` any more, and stop asking for schemas that nobody else waits for."""
        for id, question in list(self._open.items()):
            question.callbacks.discard(callback)
            if not question.callbacks:
                question.asking.cancel()
                del self._open[id]

    async def close(self) -> None:
        """Ask for nothing more."""
        asking = [question.asking for question in self._open.values()]
        self._open.clear()
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _look_up(self, id: int) -> None:
        backoff = Backoff(FIRST_RETRY_S, DENIED_RETRY_S)
        while True:
            try:
                await self._ask(id)
                break
            except _UnavailableError as error:
                self._warn(id, str(error))
                last_retry_s = DENIED_RETRY_S if isinstance(error, _DeniedError) else LAST_RETRY_S
            await asyncio.sleep(min(backoff.next_s(), last_retry_s))
        question = self._open.pop(id)
        if self._warned_at is not None and not any(other.trouble for other in self._open.values()):
            log.info("the schema registry at %s answers again", self._address)
            self._warned_at = None
        for callback in question.callbacks:
            callback()

    async def _ask(self, id: int) -> None:
        """Take in what the registry says of an id. Raises _UnavailableError."""
        try:
            if self._session is None:
                self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
            place = self._address / "schemas" / "ids" / str(id)
            async with self._session.get(place, headers=self._access.headers()) as response:
                status, body = response.status, await response.read()
        except Exception as error:  # whatever it is, commands wait for an answer: it is asked again
            raise _UnavailableError(str(error) or type(error).__name__) from error
        if status == 404 and _is_missing(body):
            self.schemas.refuse(id, "the schema registry does not have it")
        elif status in (401, 403):
            raise _DeniedError(
                f"it answers {status}; check schema_registry_username, schema_registry_password and that user's rights"
            )
        elif status != 200:
            raise _UnavailableError(f"it answers {status}")
        else:
            try:
                self._note(id, msgspec.json.decode(body, type=_Answer))
            except msgspec.MsgspecError as error:
                raise _UnavailableError(f"it does not answer like a schema registry: {error}") from error

    def _note(self, id: int, answer: _Answer) -> None:
        if answer.schemaType != "AVRO":
            self.schemas.refuse(id, f"it is of the type {answer.schemaType}, not AVRO")
        elif answer.references:
            self.schemas.refuse(id, "it refers to other schemas: register it in one piece")
        else:
            try:
                self.schemas.note(id, msgspec.json.decode(answer.schema))
            except (msgspec.DecodeError, RecursionError) as error:
                self.schemas.refuse(id, f"it is not JSON: {error}")

    def _warn(self, id: int, reason: str) -> None:
        trouble = f"the schema registry at {self._address} cannot be asked for schema {id}: {reason}"
        self._open[id].trouble = trouble
        now = time.monotonic()
        if self._warned_at is None or now - self._warned_at >= WARN_AGAIN_S:
            log.warning("%s; %s", trouble, self._effect)
            self._warned_at = now


def _is_missing(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Refusal).error_code == SCHEMA_NOT_FOUND
    except msgspec.MsgspecError:
        return False
