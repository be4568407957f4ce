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

from yarl import URL

from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.wire.schemas import Schemas

from .registry_client import RegistryClient, RegistryDeniedError, RegistryUnavailableError
from .retrying import Backoff
from .schema_references import whole_schema

FIRST_RETRY_S, LAST_RETRY_S = 0.5, 5.0
DENIED_RETRY_S = 30.0
"""After an answer that stays the same until somebody corrects a right or a password."""
WARN_AGAIN_S = 60.0

log = logging.getLogger(__name__)


@dataclass
class _Question:
    """A schema that is being looked up: who waits for it, who for trouble, and why there is no answer yet."""

    asking: asyncio.Task[None]
    callbacks: set[Callable[[], None]] = field(default_factory=set)
    on_trouble: set[Callable[[], None]] = field(default_factory=set)
    trouble: str | None = None


class SchemaRegistry:
    """The schema registry as a worker uses it. Schemas that are found go into `schemas`.

    `effect` says in the log what a schema that cannot be asked for leads to.
    """

    def __init__(
        self, access: RegistryAccess, schemas: Schemas, effect: str = "Avro commands with unknown schemas wait"
    ) -> None:
        access.headers()  # a password that cannot be read is an error here, and none while commands wait
        self._address = URL(access.address)
        self._client = RegistryClient(access)
        self.schemas = schemas
        self._effect = effect
        self._open: dict[int, _Question] = {}
        self._warned_at: float | None = None  # of trouble, if there is any (monotonic, s)

    def ask_for(self, id: int, callback: Callable[[], None], on_trouble: Callable[[], None] | None = None) -> None:
        """Look a schema up; call `callback` when it is known whether there is one.

        Call `on_trouble` when the first attempt fails, from when on `trouble_with` says why.
        """
        if id not in self._open:
            self._open[id] = _Question(asyncio.create_task(self._look_up(id), name=f"schema {id}", context=Context()))
        question = self._open[id]
        question.callbacks.add(callback)
        if on_trouble is not None:
            question.on_trouble.add(on_trouble)

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
            question.on_trouble.discard(callback)
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
        await self._client.close()

    async def _look_up(self, id: int) -> None:
        backoff = Backoff(FIRST_RETRY_S, DENIED_RETRY_S)
        while True:
            try:
                await self._ask(id)
                break
            except RegistryUnavailableError as error:
                self._warn(id, str(error))
                last_retry_s = DENIED_RETRY_S if isinstance(error, RegistryDeniedError) else LAST_RETRY_S
            await asyncio.sleep(min(backoff.next_s(), last_retry_s))
        question = self._open.pop(id)
        if self._warned_at is not None and not any(other.trouble for other in self._open.values()):
            log.info("the schema registry at %s answers again", self._address)
            self._warned_at = None
        for callback in question.callbacks:
            callback()

    async def _ask(self, id: int) -> None:
        """Take in what the registry says of an id. Raises RegistryUnavailableError."""
        registered = await self._client.by_id(id)
        if registered is None:
            self.schemas.refuse(id, "the schema registry does not have it")
            return
        try:
            self.schemas.note(id, await whole_schema(registered, self._client))
        except (ValueError, RecursionError) as error:
            self.schemas.refuse(id, str(error))

    def _warn(self, id: int, reason: str) -> None:
        trouble = f"the schema registry at {self._address} cannot be asked for schema {id}: {reason}"
        question = self._open[id]
        is_first, question.trouble = question.trouble is None, trouble
        now = time.monotonic()
        if self._warned_at is None or now - self._warned_at >= WARN_AGAIN_S:
            log.warning("%s; %s", trouble, self._effect)
            self._warned_at = now
        if is_first:
            for callback in question.on_trouble:
                callback()
