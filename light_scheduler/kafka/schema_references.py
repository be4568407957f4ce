"""Resolves the references of a schema in a schema registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from light_scheduler.wire.schema_references import in_one_piece

from .registry_client import Reference, RegisteredSchema, RegistryClient

MOST_REFERENCES = 100
"""Maximum number of schemas to which a schema refers, directly or indirectly."""


async def whole_schema(registered: RegisteredSchema, registry: RegistryClient) -> Any:
    """Return a schema with all its references merged in. Raises ValueError with the reason if it is unusable.

    Raises RegistryUnavailableError.
    """
    if registered.schemaType != "AVRO":
        raise ValueError(f"it is of the type {registered.schemaType}, not AVRO")
    schema = _json_of(registered)
    if not registered.references:
        return schema
    found: dict[str, Any] = {}
    await _look_up(registered.references, registry, found)
    return in_one_piece(schema, found.values())


async def _look_up(references: Sequence[Reference], registry: RegistryClient, found: dict[str, Any]) -> None:
    """Look up references and add them to `found`, which has schemas by the name in the reference.

    As in the registry's own parser, the first reference with a name counts.
    """
    for reference in references:
        if reference.name in found:
            continue
        if len(found) == MOST_REFERENCES:
            raise ValueError(f"it refers to more than {MOST_REFERENCES} schemas")
        told = f"version {reference.version} of the subject {reference.subject}, to which it refers,"
        registered = await registry.by_version(reference.subject, reference.version)
        if registered is None:
            raise ValueError(f"the schema registry does not have {told.rstrip(',')}")
        if registered.schemaType != "AVRO":
            raise ValueError(f"{told} is of the type {registered.schemaType}, not AVRO")
        try:
            found[reference.name] = _json_of(registered)
        except ValueError as error:
            raise ValueError(f"{told} cannot be read: {error}") from None
        await _look_up(registered.references, registry, found)


def _json_of(registered: RegisteredSchema) -> Any:
    try:
        return msgspec.json.decode(registered.schema)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
