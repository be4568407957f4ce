"""Formats of texts in requests, as JSON Schemas for OpenAPI. They correspond to the parsers in `wire`.

They only describe: the parsers validate, with better errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Meta

from light_scheduler.model.tenant import TENANT_NAME
from light_scheduler.wire.fields import ID_PATTERN, TOPIC_PATTERN

TENANT: Mapping[str, Any] = {"pattern": f"^{TENANT_NAME.pattern}$"}
TOPIC: Mapping[str, Any] = {"pattern": TOPIC_PATTERN}
ID: Mapping[str, Any] = {"pattern": ID_PATTERN}
PART: Mapping[str, Any] = {"pattern": r"^[^\x00]*$"}
"""Part of a text. It may contain any character except the one that separates texts in the table."""
_MILLISECONDS = (
    r"^([1-9][0-9]{11,13}|1[0-9]{14}|2[0-4][0-9]{13}|25[0-2][0-9]{12}|253[0-3][0-9]{11}"
    r"|25340[01][0-9]{9}|253402[0-2][0-9]{8}|253402300[0-7][0-9]{5})$"
)
INSTANT: Mapping[str, Any] = {"anyOf": [{"pattern": _MILLISECONDS}, {"format": "date-time"}]}
"""UTC epoch ms, or RFC 3339 with an offset."""

LOWER_BOUND: Mapping[str, Any] = {"anyOf": [{"pattern": "^0$"}, *INSTANT["anyOf"]]}
"""An instant, or 0: from 1970 on."""


def described(description: str, form: Mapping[str, Any]) -> Meta:
    """Return the schema annotations for a text in this format."""
    return Meta(description=description, extra_json_schema=dict(form))
