"""Where each field of a command is in the JSON form: paths such as `target.topic`, and names at the top level."""

from __future__ import annotations

from .fields import RULES

ENTITY_KEY = "key"
USER_HEADERS = "target.headers"
PAYLOADS = ("text", "json", "base64")

FIELDS: dict[str, str] = {rule.json_path: field for field, rule in RULES.items()}
FIELDS |= {field.replace("-", "_"): field for field in RULES}  # at the top level as well
FIELDS |= {f"trigger.{name}": FIELDS[name] for name in ("misfire", "misfire_grace")}
GROUPS = ("trigger", "target")
PATHS = (*FIELDS, ENTITY_KEY, USER_HEADERS, "payload")
WITHIN = frozenset({*(path for path in PATHS if "." in path), *(f"payload.{form}" for form in PAYLOADS)})
"""Paths into members of the object. None of them is the name of a member."""

AT_TOP = frozenset({*(path for path in PATHS if "." not in path), *GROUPS})
"""Names of members at the top level."""
