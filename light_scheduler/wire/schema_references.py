"""Merges Avro schemas that refer to types of other schemas in a registry into one schema.

The merged schema has the definition of each type at its first use, and its full name elsewhere. So no other schema is
needed to read it.

Within a namespace, parsers resolve a name without a namespace in that namespace, so a type without a namespace could
not be referred to there. Therefore, such types get the namespace `OUTSIDE`. Data does not contain names of types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_NAMED = frozenset({"record", "error", "enum", "fixed"})
_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

OUTSIDE = "light_scheduler.without_namespace"
"""The namespace in a merged schema for types without a namespace."""


def in_one_piece(schema: Any, referenced: Iterable[Any]) -> Any:
    """Merge a schema with the types of other schemas that it refers to.

    Raises ValueError if two schemas define a name differently, or one is not an Avro schema.
    """
    types: dict[str, Any] = {}
    try:
        for other in referenced:
            for name, definition in _defined(other, ""):
                if types.setdefault(name, definition) != definition:
                    raise ValueError(f"it refers to two schemas that define {name} in two ways")
        return _Piece(types).of(schema, "")
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"it, or a schema that it refers to, is no Avro schema: {error!r}") from None


def own_name(full: str) -> str:
    """Return the full name of a type in its own schema, from its name in the merged schema."""
    return full.removeprefix(f"{OUTSIDE}.")


class _Piece:
    """Inserts definitions of `types` (by full name) at their first use."""

    def __init__(self, types: dict[str, Any]) -> None:
        self._types = types
        self._placed: set[str] = set()

    def of(self, schema: Any, space: str) -> Any:
        """Return a merged part of the schema. `space` is the enclosing namespace."""
        if isinstance(schema, list):
            return [self.of(branch, space) for branch in schema]
        if isinstance(schema, str):
            return self._named(schema, space)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.of(kind, space)
        if kind in _NAMED:
            return self._definition(schema, space)
        if kind == "array":
            return {**schema, "items": self.of(schema["items"], space)}
        if kind == "map":
            return {**schema, "values": self.of(schema["values"], space)}
        return schema if kind in _PRIMITIVE else self.of(kind, space)

    def _named(self, name: str, space: str) -> Any:
        if name in _PRIMITIVE:
            return name
        # Java's parser also looks for names without a namespace.
        for full in (_full(name, space), name):
            if full in self._placed:
                return _shown(full)
            if full in self._types:
                return self._definition(self._types[full], "")
        return name

    def _definition(self, schema: Any, space: str) -> Any:
        full, within = _names(schema, space)
        if full in self._placed:
            return _shown(full)
        self._placed.add(full)
        placed = {**schema, "name": _shown(full), "namespace": within or OUTSIDE}
        if "fields" in schema:
            placed["fields"] = [{**field, "type": self.of(field["type"], within)} for field in schema["fields"]]
        return placed


def _defined(schema: Any, space: str) -> Iterator[tuple[str, Any]]:
    """Yield (full name, definition) of the types that a schema defines. The definition also has the full name."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _defined(branch, space)
    elif isinstance(schema, dict):
        kind = schema["type"]
        if isinstance(kind, str) and kind in _NAMED:
            full, within = _names(schema, space)
            yield full, {**schema, "name": full, "namespace": within}
            for field in schema.get("fields", ()):
                yield from _defined(field["type"], within)
        else:
            for inner in ("items", "values", "type"):
                yield from _defined(schema.get(inner), space)


def _names(schema: Any, space: str) -> tuple[str, str]:
    """Return the full name of a type that is defined in a namespace, and the namespace for its content."""
    name = schema["name"]
    full = _full(name, schema.get("namespace") or ("" if "namespace" in schema else space))
    return full, full.rpartition(".")[0]


def _shown(full: str) -> str:
    """Return the name of a type in the merged schema, from its full name."""
    return full if "." in full else f"{OUTSIDE}.{full}"


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"
