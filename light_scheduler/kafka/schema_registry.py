"""Asking a schema registry for the schemas that Avro commands were written with.

A schema is asked for in the background, until the registry answers: what needs it waits meanwhile, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from light_scheduler.wire.schemas import Schemas

TIMEOUT_S = 5.0
FIRST_RETRY_S, LAST_RETRY_S = 0.5, 5.0
SCHEMA_NOT_FOUND = 40_403
"""The registry's own code: another 404 is of something that is no registry."""

log = logging.getLogger(__name__)


class _Refusal(msgspec.Struct):
    """Of anything that goes wrong there."""

    error_code: int


class _Answer(msgspec.Struct):
    """Of `GET /schemas/ids/{id}`."""

    schema: str
    schemaType: str = "AVRO"  # noqa: N815 - the registry's name
    references: list[Any] = []


class SchemaRegistry:
    """Of a worker. What is found goes into `schemas`."""

    def __init__(self, address: str, schemas: Schemas) -> None:
        self._address = URL(address)
        self.schemas = schemas
        self._session: aiohttp.ClientSession | None = None
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._waiting: dict[int, set[Callable[[], None]]] = {}
        self.trouble: str | None = None
        """Why the registry cannot be asked just now."""

    def ask_for(self, id: int, told: Callable[[], None]) -> None:
        """Have a schema looked up; `told` is called when it is known whether there is one."""
        self._waiting.setdefault(id, set()).add(told)
        if id not in self._asking:
            self._asking[id] = asyncio.create_task(self._look_up(id), name=f"schema {id}")

    async def close(self) -> None:
        """Ask for nothing more."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _look_up(self, id: int) -> None:
        retry_s = FIRST_RETRY_S
        while not await self._answered(id):
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, LAST_RETRY_S)
        if self.trouble is not None:
            log.info("the schema registry at %s answers again", self._shown)
            self.trouble = None
        del self._asking[id]
        for told in self._waiting.pop(id, ()):
            told()

    async def _answered(self, id: int) -> bool:
        try:
            if self._session is None:
                self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
            async with self._session.get(self._address / "schemas" / "ids" / str(id)) as response:
                body = await response.read()
                if response.status == 404 and _is_missing(body):
                    self.schemas.refuse(id, "the schema registry does not have it")
                    return True
                if response.status != 200:
                    return self._is_away(f"it answers {response.status}")
                self._note(id, msgspec.json.decode(body, type=_Answer))
        except msgspec.MsgspecError as error:
            return self._is_away(f"it does not answer like a schema registry: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, commands wait for an answer: it is asked again
            return self._is_away(str(error) or type(error).__name__)
        return True

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

    def _is_away(self, reason: str) -> bool:
        trouble = f"the schema registry at {self._shown} cannot be asked: {reason}"
        if self.trouble is None:
            log.warning("%s; Avro commands with schemas that are not known yet wait", trouble)
        self.trouble = trouble
        return False

    @property
    def _shown(self) -> URL:
        return self._address.with_user(None)


def _is_missing(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Refusal).error_code == SCHEMA_NOT_FOUND
    except msgspec.MsgspecError:
        return False
