"""Gets the schemas with which Avro was written from a schema registry.

Schemas are requested in the background until the registry answers. Only commands that need a schema wait for it.
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
"""Pause after an answer that stays the same until a right or a password is corrected."""
WARN_AGAIN_S = 60.0

log = logging.getLogger(__name__)


@dataclass
class _Question:
    """A running look-up: callbacks for the answer and for trouble, and the reason why there is no answer yet."""

    asking: asyncio.Task[None]
    callbacks: set[Callable[[], None]] = field(default_factory=set)
    on_trouble: set[Callable[[], None]] = field(default_factory=set)
    trouble: str | None = None


class SchemaRegistry:
    """The schema registry as a worker uses it. Adds found schemas to `schemas`.

    `effect` describes the effect of a schema that cannot be requested, for the log.
    """

    def __init__(
        self, access: RegistryAccess, schemas: Schemas, effect: str = "Avro commands with unknown schemas wait"
    ) -> None:
        access.headers()  # raises early if a password cannot be read, and not only when commands wait
        self._address = URL(access.address)
        self._client = RegistryClient(access)
        self.schemas = schemas
        self._effect = effect
        self._open: dict[int, _Question] = {}
        self._warned_at: float | None = None  # last warning of current trouble (monotonic, s)

    def ask_for(self, id: int, callback: Callable[[], None], on_trouble: Callable[[], None] | None = None) -> None:
        """Look up a schema. Calls `callback` once it is known whether the schema exists.

        Calls `on_trouble` when the first attempt fails; from then on, `trouble_with` returns the reason.
        """
        if id not in self._open:
            self._open[id] = _Question(asyncio.create_task(self._look_up(id), name=f"schema {id}", context=Context()))
        question = self._open[id]
        question.callbacks.add(callback)
        if on_trouble is not None:
            question.on_trouble.add(on_trouble)

    async def trouble_getting(self, id: int, timeout_s: float) -> str | None:
        """Look up a schema and wait for the answer. Return why there is no answer in time, or None if there is one."""
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
        """Return why a requested schema is not known yet; None if no attempt has failed."""
        question = self._open.get(id)
        return None if question is None else question.trouble

    def forget(self, callback: Callable[[], None]) -> None:
        """Remove `callback`, and cancel look-ups without other callbacks."""
        for id, question in list(self._open.items()):
            question.callbacks.discard(callback)
            question.on_trouble.discard(callback)
            if not question.callbacks:
                question.asking.cancel()
                del self._open[id]

    async def close(self) -> None:
        """Cancel all look-ups and close the connections."""
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
        """Request the schema with an id, and store the answer. Raises RegistryUnavailableError."""
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
