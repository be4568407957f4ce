"""Gets the ids of the schemas with which a worker writes Avro from a schema registry.

A subject is the registry's name for the versions of a schema. Serializers choose it by a strategy:

    topic           {topic}-key, {topic}-value        TopicNameStrategy, their default
    record          {full name of the record}         RecordNameStrategy
    topic-record    {topic}-{full name}               TopicRecordNameStrategy

Reading needs no subject: a frame has the id of its schema, which is the same for all subjects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Literal

from light_scheduler.connection.registry import RegistryAccess

from .registry_client import RegistryClient, RegistryError, SchemaRefusedError

KEPT_S = 300.0
RETRY_S = 10.0

Part = Literal["key", "value"]
"""The part of a record that a schema describes."""


def subject_of(strategy: str, topic: str, part: Part, schema: Mapping[str, Any]) -> str:
    """Return the subject of a record's schema in a strategy."""
    if strategy == "topic":
        return f"{topic}-{part}"
    name = f"{schema['namespace']}.{schema['name']}"
    return name if strategy == "record" else f"{topic}-{name}"


class SchemaIds:
    """A cache of ids of schemas in a registry. New schemas are registered.

    Each id is requested again after `KEPT_S`, since a new registry has other ids. While the registry does not answer or
    denies the login, known ids stay in use, and are requested every `RETRY_S`. If it refuses a schema (any other 4xx,
    such as 409), the id is forgotten, since it may stand for another schema there. `monotonic` is in seconds.
    """

    def __init__(self, access: RegistryAccess, strategy: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._address = access.address
        self._client = RegistryClient(access)
        self._strategy = strategy
        self._monotonic = monotonic
        self._known: dict[str, tuple[int, float]] = {}  # subject -> (id, valid until)

    async def id_of(self, topic: str, part: Part, schema: Mapping[str, Any]) -> int:
        """Return the id of a record's schema for a topic. Raises RegistryError if it is unknown."""
        subject = subject_of(self._strategy, topic, part, schema)
        known, until = self._known.get(subject, (None, -inf))
        if known is not None and self._monotonic() < until:
            return known
        try:
            id, kept_s = await self._client.id_of(subject, schema), KEPT_S
        except RegistryError as error:
            if known is None or isinstance(error, SchemaRefusedError):
                self._known.pop(subject, None)
                text = f"the schema registry at {self._address} has no id for {subject}: {error}"
                raise type(error)(text) from error
            id, kept_s = known, RETRY_S
        self._known[subject] = id, self._monotonic() + kept_s
        return id

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
