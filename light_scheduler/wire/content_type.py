"""The content type of records whose value is a command in the JSON form."""

from __future__ import annotations

CONTENT_TYPE = "content-type"
"""Name of the header."""

JSON_COMMAND = b"application/vnd.light-scheduler.command+json"


def is_json_command(content_type: bytes | None) -> bool:
    """Return whether a content type, ignoring parameters, is that of JSON commands."""
    if content_type is None or len(content_type) < len(JSON_COMMAND):
        return False
    lower = content_type.lower()
    return JSON_COMMAND in lower and lower.split(b";", 1)[0].strip() == JSON_COMMAND
