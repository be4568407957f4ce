"""Converts rows of a file to commands: JSON Lines in the JSON form, or CSV with the options of `schedule` as
columns."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from light_scheduler.client import ScheduleRequest
from light_scheduler.client.channel import MakeCommand
from light_scheduler.client.commands import InvalidHeader, schedule_command
from light_scheduler.errors import InvalidCommand
from light_scheduler.web.commands.requested import requested
from light_scheduler.wire.json_commands import json_name
from light_scheduler.wire.named_fields import in_names

from .csv_lines import HEADER, columns_of, csv_rows
from .file_position import LoadedLines

Format = Literal["jsonl", "csv"]

_TENANT = "tenant"
_NULL = b"null"


@dataclass(frozen=True)
class Row:
    """A row: the number of its last line, its text, and its command or the error in it."""

    line: int
    text: str
    make: MakeCommand | None
    field: str | None = None
    reason: str | None = None


def rows_of(lines: LoadedLines, format: Format, tenant: str) -> Iterator[Row]:
    """Read rows from the current position of the lines. `tenant` is for rows without one.

    A schedule without id and key gets an id that stays the same whenever this load reads the row. Raises ValueError for
    unknown CSV columns, and if the end of a row cannot be found.
    """
    return _json_rows(lines, tenant) if format == "jsonl" else _csv_rows(lines, tenant)


def field_name(field: str | None, format: Format) -> str | None:
    """Return the name of a field in the file. `field` is the name in a result, which is that of its header."""
    if field is None:
        return None
    return json_name(field) if format == "jsonl" else in_names(field, str)


def reason_in(reason: str, format: Format) -> str:
    """Return a reason that names fields as the file does; `reason` is as in a result."""
    return reason if format == "jsonl" else in_names(reason, str)


def _json_rows(lines: LoadedLines, tenant: str) -> Iterator[Row]:
    for line in lines:
        if not line.strip():
            continue
        text, number = line.rstrip("\r\n"), lines.number
        defaults = {"command": "schedule", "tenant": tenant}
        try:
            if _needs_id(text):
                defaults["id"] = _made_id(lines)
            make = requested(text.encode(), {}, lambda _: [], defaults, needs_target=False).record
        except InvalidCommand as error:
            yield Row(number, text, None, error.field, error.reason)
        else:
            yield Row(number, text, make)


def _needs_id(text: str) -> bool:
    """Return whether a row is a schedule that has no key to use as its id. Raises InvalidCommand."""
    members = _members(text)
    command, key = (bytes(members.get(name, _NULL)) for name in ("command", "key"))
    return key == _NULL and command in (_NULL, b'"schedule"')


def _members(text: str) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidCommand("body", f"is not a JSON object: {error}") from None


def _csv_rows(lines: LoadedLines, tenant: str) -> Iterator[Row]:
    columns = columns_of(lines.first)
    for cells in csv_rows(lines):
        if cells.line == 1:
            continue
        number, text = cells.line, cells.text
        if cells.reason is not None:
            yield Row(number, text, None, None, cells.reason)
            continue
        if len(cells.cells) != len(columns):
            reason = f"has {len(cells.cells)} cells, and there are {len(columns)} columns"
            yield Row(number, text, None, None, reason)
            continue
        given = {name: cell for name, cell in zip(columns, cells.cells, strict=True) if cell}
        own = given.pop(_TENANT, tenant)
        try:
            yield Row(number, text, _maker(_request(given), own, _made_id(lines)))
        except InvalidHeader as error:
            yield Row(number, text, None, f"{HEADER}{error.field}", error.reason)
        except InvalidCommand as error:
            yield Row(number, text, None, field_name(error.field, "csv"), reason_in(error.reason, "csv"))


def _request(cells: dict[str, str]) -> dict[str, Any]:
    headers = [(name.removeprefix(HEADER), cell) for name, cell in cells.items() if name.startswith(HEADER)]
    request: dict[str, Any] = {
        name.replace("-", "_"): cell for name, cell in cells.items() if not name.startswith(HEADER)
    }
    if "target_topic" in request:
        request["topic"] = request.pop("target_topic")
    return {**request, "payload": request.get("payload", "").encode(), "headers": headers}


def _maker(request: dict[str, Any], tenant: str, made_id: str) -> MakeCommand:
    """Return a function that makes the command of a row. Raises InvalidCommand."""
    whole = ScheduleRequest(**request)  # type: ignore[typeddict-item]  # text stands for every type of argument
    schedule_command(tenant, whole, generated_id=made_id)
    return lambda reply_to: schedule_command(tenant, whole, generated_id=made_id, reply_to=reply_to)


def _made_id(lines: LoadedLines) -> str:
    return str(uuid.uuid5(uuid.UUID(lines.name), str(lines.number)))
