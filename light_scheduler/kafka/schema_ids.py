"""Asking a schema registry for the ids of schemas that a worker writes Avro with.

A subject is the registry's name for the versions of a schema. Serializers name it by a strategy:

    topic           {topic}-key, {topic}-value        TopicNameStrategy, their default
    record          {full name of the record}         RecordNameStrategy
    topic-record    {topic}-{full name}               TopicRecordNameStrategy

What is read needs none: a frame names its schema by an id, which is the same for all subjects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Literal

import aiohttp
import msgspec
from yarl import URL

from light_scheduler.connection.registry import RegistryAccess

TIMEOUT_S = 5.0
KEPT_S = 300.0
RETRY_S = 10.0
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_SHOWN = 200
_SAYS_NOTHING = frozenset({401, 403, 408, 429})
"""Statuses of the client's faults that say nothing about a schema."""

Part = Literal["key", "value"]
"""The part of a record that a schema is of."""


class RegistryError(Exception):
    """The registry gives no id; the text says why."""


class _RefusedError(RegistryError):
    """The registry does not take the schema."""


class _Registered(msgspec.Struct):
    """The body of the answer to `POST /subjects/{subject}/versions`."""

    id: int


def subject_of(strategy: str, topic: str, part: Part, schema: Mapping[str, Any]) -> str:
    """Return the subject that a strategy names a record's schema by."""
    if strategy == "topic":
        return f"{topic}-{part}"
    name = f"{schema['namespace']}.{schema['name']}"
    return name if strategy == "record" else f"{topic}-{name}"


class SchemaIds:
    """Ids of schemas in a registry, which takes those that it does not have yet.

    Each is asked for again after `KEPT_S`, since a registry that was set up anew has others. While the registry does
    not answer, or asks for a login, those that are known stay, and are asked for every `RETRY_S`. Once it refuses a
    schema (any other 4xx, such as 409), its id is not known any more: it may stand for another schema there.
    `monotonic` is in seconds.
    """

    def __init__(self, access: RegistryAccess, strategy: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._strategy = strategy
        self._monotonic = monotonic
        self._known: dict[str, tuple[int, float]] = {}  # subject -> id, and until when

    async def id_of(self, topic: str, part: Part, schema: Mapping[str, Any]) -> int:
        """Return the id of a record's schema for a topic. Raises RegistryError if it is not known."""
        subject = subject_of(self._strategy, topic, part, schema)
        known, until = self._known.get(subject, (None, -inf))
        if known is not None and self._monotonic() < until:
            return known
        try:
            id, kept_s = await self._registered(subject, schema), KEPT_S
        except _RefusedError:
            self._known.pop(subject, None)
            raise
        except RegistryError:
            if known is None:
                raise
            id, kept_s = known, RETRY_S
        self._known[subject] = id, self._monotonic() + kept_s
        return id

    async def _registered(self, subject: str, schema: Mapping[str, Any]) -> int:
        body = msgspec.json.encode({"schema": msgspec.json.encode(schema).decode()})
        headers = {**self._access.headers(), "Content-Type": MEDIA_TYPE}
        place = URL(self._access.address) / "subjects" / subject / "versions"
        error_type = RegistryError
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
                session.post(place, data=body, headers=headers) as response,
            ):
                status, answer = response.status, await response.read()
            if status == 200:
                return msgspec.json.decode(answer, type=_Registered).id
            if 400 <= status < 500 and status not in _SAYS_NOTHING:
                error_type = _RefusedError
            reason = f"it answers {status}: {answer[:_SHOWN].decode(errors='replace')}"
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
        except msgspec.MsgspecError as error:
            reason = f"it does not answer like a schema registry: {error}"
        raise error_type(f"the schema registry at {self._access.address} has no id for {subject}: {reason}")
