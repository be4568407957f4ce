"""The JSON Schema of the JSON form."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .backoff import INTERVALS, PARTS
from .fields import CONTROL_PREFIX, RULES, FieldRule
from .json_members import ENTITY_KEY, FIELDS, GROUPS, PAYLOADS


def command_schema(fields: Collection[str] = RULES) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the JSON form, from the same table that decoding uses.

    `fields` are the allowed fields. Payload and headers of a message are included if `target-topic` is.
    """
    top: dict[str, Any] = {
        ENTITY_KEY: {
            "type": ["string", "null"],
            "description": "Entity key: commands with one key are carried out in order. Default: the record's key.",
        },
        "payload": {
            "description": "Payload of the message. Default: empty. null delivers a tombstone.",
            "oneOf": [
                {"type": "null"},
                *(
                    {
                        "type": "object",
                        "properties": {form: {} if form == "json" else {"type": "string"}},
                        "required": [form],
                        "additionalProperties": False,
                    }
                    for form in PAYLOADS
                ),
            ],
        },
    }
    groups: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    if "target-topic" in fields:
        groups["target"]["headers"] = {
            "type": ["object", "null"],
            "additionalProperties": {"type": ["string", "null"]},
            "propertyNames": {"not": {"pattern": f"^{CONTROL_PREFIX}"}},
            "description": "Headers of the message, as UTF-8 text.",
        }
    else:
        del top["payload"]
    for path, field in FIELDS.items():
        if field in fields:
            group, _, name = path.rpartition(".")
            (groups[group] if group else top)[name] = _schema_of(RULES[field], path)
    for group, properties in groups.items():
        if not properties:
            continue
        top[group] = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:light-scheduler:command",
        "title": "light-scheduler command",
        "type": "object",
        "properties": top,
        "additionalProperties": False,
    }


_OF_INTERVALS = {"items": {"type": ["string", "integer"]}}


def _schema_of(rule: FieldRule, path: str) -> dict[str, Any]:
    also = "" if path == rule.json_path else f" The same as {rule.json_path}: give one of them."
    schema: dict[str, Any] = {"type": sorted({*rule.types, "null"}), "description": rule.summary + also}
    if "array" in rule.types:
        parts = {name: {"type": sorted((type, "null", "string"))} for name, type in PARTS.items()}
        schema["properties"] = {INTERVALS: {"type": ["array", "null"], **_OF_INTERVALS}, **parts}
        schema |= {"additionalProperties": False, **_OF_INTERVALS}
    elif "object" in rule.types:
        schema["additionalProperties"] = {"type": "string"}
    return schema
