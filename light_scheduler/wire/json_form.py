"""Converts a command in headers to the JSON form, which every dialect reads, for topics that have no native dialect."""

from __future__ import annotations

import base64

import msgspec

from light_scheduler.model import Headers

from .content_type import CONTENT_TYPE, JSON_COMMAND
from .fields import CONTROL_PREFIX


def in_json_form(value: bytes | None, headers: Headers) -> tuple[bytes, Headers]:
    """Convert value and headers of a command from the native dialect to the JSON form.

    The headers must have the command, and valid control fields. The record's key stays the entity key.
    """
    members: dict[str, object] = {}
    others: Headers = [(CONTENT_TYPE, JSON_COMMAND)]
    for name, content in headers:
        if name.startswith(CONTROL_PREFIX):
            member = name.removeprefix(CONTROL_PREFIX).replace("-", "_")
            members[member] = None if content is None else content.decode()
        else:
            others.append((name, content))
    if members["command"] == "schedule":
        members["payload"] = None if value is None else {"base64": base64.b64encode(value).decode()}
    return msgspec.json.encode(members), others
