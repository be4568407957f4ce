"""The JSON form: a complete command in a record's value, for senders that cannot set headers.

    {"command": "schedule", "id": "...", "tenant": "...", "key": "...",
     "trigger": {"at": 1767225600000},
     "target": {"topic": "...", "key": "...", "partition": 3, "headers": {"name": "value"}},
     "payload": {"text": "..."} | {"json": ...} | {"base64": "..."} | null,
     "ttl": "10m", "labels": {"team": "billing"}, ...}

The names are those of the native headers without prefix, in snake_case: `schedule-on-conflict` is `on_conflict`.
Members of `trigger` and `target` can also be at the top level: `target_topic` is `target.topic`. The rules are the
same: every value is converted to the text that its header would have. An optional field that is null counts as absent,
except `target.key` and `payload`. Without `payload`, the value is empty; only `"payload": null` is a null value. `json`
payloads are delivered byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Command, Entry, Headers

from .backoff import backoff_of_list, backoff_of_parts
from .build import command_from, envelope_from
from .content_type import CONTENT_TYPE, is_json_command
from .dialect import Envelope, Plain, PlainTask
from .durations import shown
from .fields import (
    COMMANDS,
    CONTROL_PREFIX,
    OF_WORKERS,
    RULES,
    FieldRule,
    labels_of,
    may_mean,
    parse_base64,
    why_unknown,
)
from .fired_headers import fired_headers
from .firing import firing_headers
from .json_members import AT_TOP, ENTITY_KEY, FIELDS, GROUPS, PATHS, PAYLOADS, USER_HEADERS, WITHIN
from .json_values import UNREADABLE, is_null, is_whole, read
from .plain_json_commands import plain_json
from .record import CommandRecord
from .requester import REQUESTED_BY
from .signatures import not_ours
from .time_rule import TRIGGERS

_Members = dict[str, msgspec.Raw]
_MEMBERS = msgspec.json.Decoder(_Members)


def is_json_record(record: CommandRecord) -> bool:
    """Return whether a record's content type is that of a JSON command."""
    return any(name == CONTENT_TYPE and is_json_command(value) for name, value in record.headers)


def json_command(body: bytes, given: Mapping[str, str], defaults: Mapping[str, Any] | None = None) -> bytes:
    """Return the command from a body, with members that are `given` elsewhere. Other members are not changed.

    An empty body has no members. `defaults` are for members that are in neither. A default id is not used if the body
    has a key, which is then the id. Raises InvalidCommand if the body is not a JSON object, or a member contradicts
    `given`.
    """
    members = _members(body, "body") if body else {}
    if len(members) > len(AT_TOP):  # some must be unknown: refuse the first one without processing the rest
        _refuse_unknown(members)
    for name, text in given.items():
        if name in members and not _says(members[name], name, text):
            raise InvalidCommand(
                name, f"must be {shown(text)} here: that is what the path or a header says. Leave it out"
            )
    used = dict(defaults or {})
    if "id" in used and ENTITY_KEY in members and not _is_null(members[ENTITY_KEY], ENTITY_KEY):
        del used["id"]
    raw = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in {**used, **given}.items()}
    missing = {name for name in raw if name in members and _value(members[name], name) is None}
    return msgspec.json.encode({**raw, **{name: members[name] for name in members if name not in missing}})


def _says(raw: msgspec.Raw, name: str, told: str) -> bool:
    """Return whether a member is null or agrees with the text given elsewhere."""
    value = _value(raw, name)
    rule = RULES.get(FIELDS.get(name, ""))
    return value is None or (value if rule is None else _text_of(value, rule)) == told


def json_path(field: str) -> str:
    """Return the path of a control field in the JSON form."""
    return RULES[field].json_path


def json_name(field: str) -> str:
    """Return the JSON path for a field that an error names by its header. Other names are returned unchanged."""
    name = field.removeprefix(CONTROL_PREFIX)
    return json_path(name) if field.startswith(CONTROL_PREFIX) and name in RULES else field


class JsonDialect:
    """Commands as JSON values. A null value cancels the schedule whose id is the key.

    In topics of other schedulers, ids of schedules `may_end_in_any`, that is, in `*` (see `build.command_from`).
    """

    def __init__(self, *, may_end_in_any: bool = False) -> None:
        self._may_end_in_any = may_end_in_any

    name = "json"
    forwards = True
    has_schemas = False
    has_tasks = False

    def plain(self, record: CommandRecord) -> Plain | None:
        return plain_json(record)

    def task(self, record: CommandRecord) -> PlainTask | None:  # noqa: ARG002 - it has no fast path for them
        return None

    def decode(self, record: CommandRecord) -> Command:
        headers = _record_headers(record)
        if record.value is None:
            return command_from({"command": "cancel"}, record, record.key, None, headers, json_path)
        members = _members(record.value, "value")
        given: dict[str, Any] = {}
        paths: dict[str, str] = {}
        for path, raw in _flattened(members):
            if path == USER_HEADERS:
                headers = _user_headers(raw) + headers
            elif path in FIELDS:
                field = FIELDS[path]
                _read(given, field, path, raw)
                if field in given:
                    paths[field] = path
            elif path not in (ENTITY_KEY, "payload"):
                raise _not_known(path)
        payload = _payload(members.get("payload"))
        key = _entity_key(members, record)

        def path_of(field: str) -> str:
            return paths.get(field) or json_path(field)

        return command_from(given, record, key, payload, headers, path_of, may_end_in_any=self._may_end_in_any)

    def field_name(self, record: CommandRecord, field: str) -> str:  # noqa: ARG002 - the same for every record
        """Return the JSON path of a field given by its header name."""
        return json_name(field)

    def salvage(self, record: CommandRecord) -> Envelope:
        members = _value_or_none(record.value)
        if not isinstance(members, dict):
            envelope = envelope_from({}, None, record.key, record.value)
            return msgspec.structs.replace(envelope, is_tenant_known=False)
        texts = {
            field: text
            for path, field in FIELDS.items()
            if (text := _text_of(_at_path(members, path), RULES[field])) is not None
        }
        has_trigger = members.get("trigger") or any(members.get(field) is not None for field in TRIGGERS)
        if has_trigger and texts.get("command") not in COMMANDS:
            texts["command"] = "schedule"  # only a schedule has a trigger, even if it is invalid
        named = members.get(ENTITY_KEY)
        key = named.encode() if isinstance(named, str) else None
        correlation_id = texts.get("correlation-id")
        envelope = envelope_from(
            texts,
            None if correlation_id is None else correlation_id.encode(),
            record.key if key is None else key,
            None if "payload" in members and members["payload"] is None else b"",
        )
        is_known = envelope.is_tenant_known and isinstance(members.get("tenant", ""), str)
        is_known = is_known and not _names_a_tenant_elsewhere(record, members)
        return msgspec.structs.replace(envelope, is_tenant_known=is_known, key=key)

    def delivered(self, entry: Entry, fired_at: int, source_topic: bytes) -> tuple[bytes | None, Headers]:
        return entry.schedule.payload, firing_headers(entry, fired_at, source_topic)

    def fired_headers(self, fired_at: int, source_topic: bytes) -> Callable[[Entry, bytes], Headers]:
        return fired_headers(fired_at, source_topic)

    def needs_schemas(self, records: Sequence[CommandRecord]) -> bool:  # noqa: ARG002 - JSON needs no schema
        return False

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:  # noqa: ARG002 - JSON needs no schema
        return ()


def _names_a_tenant_elsewhere(record: CommandRecord, members: dict[str, Any]) -> bool:
    """Return whether a record has a tenant header, which the JSON form ignores, or a name that is similar to tenant."""
    headers = _at_path(members, USER_HEADERS)
    given = [*(name for name, _ in record.headers), *(headers if isinstance(headers, dict) else ())]
    controls = (name.removeprefix(CONTROL_PREFIX) for name in given if name.startswith(CONTROL_PREFIX))
    misplaced = (field for field in controls if field == "tenant" or field not in RULES)
    return may_mean(chain(_unknown_names(members), misplaced), "tenant")


def _unknown_names(members: Mapping[str, Any]) -> Iterator[str]:
    for name, value in members.items():
        if name in WITHIN or (name not in PATHS and name not in GROUPS):
            yield name
        if name in (*GROUPS, "payload") and isinstance(value, dict):
            yield from (inner for inner in value if f"{name}.{inner}" not in WITHIN)


def _members(value: bytes | msgspec.Raw, path: str) -> _Members:
    try:
        return _MEMBERS.decode(value)
    except msgspec.ValidationError:
        raise InvalidCommand(path, "must be a JSON object") from None
    except UNREADABLE as error:
        raise InvalidCommand(path, f"is not JSON: {error}") from None


def _flattened(members: _Members) -> Iterator[tuple[str, msgspec.Raw]]:
    for name, raw in members.items():
        if name in GROUPS:
            if not _is_null(raw, name):
                yield from ((f"{name}.{inner}", value) for inner, value in _members(raw, name).items())
        elif name in WITHIN:
            raise _not_known(name)
        else:
            yield name, raw


def _refuse_unknown(members: _Members) -> None:
    """Raise InvalidCommand for the first unknown member, if any."""
    unknown = next((name for name in members if name not in AT_TOP), None)
    if unknown is not None:
        raise _not_known(unknown)


def _not_known(path: str) -> InvalidCommand:
    if path in WITHIN:
        group, _, inner = path.partition(".")
        return InvalidCommand(path, f'is not known; did you mean "{group}": {{"{inner}": ...}}?')
    field = path.removeprefix("trigger.").replace("_", "-") if path != "trigger.key" else path
    return InvalidCommand(path or '""', why_unknown(field, path, PATHS))


def _read(given: dict[str, Any], field: str, path: str, raw: msgspec.Raw) -> None:
    rule = RULES[field]
    if (kind := _kind_of_many(raw)) is not None and kind not in rule.types:  # before decoding the value
        raise InvalidCommand(path, f"must be {' or '.join(rule.types)}")
    value = _value(raw, path)
    if value is None and "null" not in rule.types:
        return
    if field in given:
        raise InvalidCommand(path, "is given twice")
    try:
        if value is None:
            given[field] = None
        elif isinstance(value, dict) and field == "labels":
            given[field] = labels_of((name, _text(text)) for name, text in value.items())
        elif isinstance(value, dict) and "object" in rule.types:
            given[field] = backoff_of_parts(value)
        elif isinstance(value, list) and "array" in rule.types:
            given[field] = backoff_of_list(value)
        elif isinstance(value, bool) and "boolean" in rule.types:
            given[field] = rule.parse("true" if value else "false")
        elif (text := _text_of(value, rule)) is not None:
            given[field] = rule.parse(text)
        else:
            raise ValueError(f"must be {' or '.join(rule.types)}")
    except ValueError as error:
        raise InvalidCommand(path, str(error)) from None


def _text_of(value: Any, rule: FieldRule) -> str | None:
    """Return the header's text for a text, or for a whole number if the field allows integers; otherwise None."""
    if isinstance(value, str):
        return value
    return str(int(value)) if "integer" in rule.types and is_whole(value) else None


def _entity_key(members: _Members, record: CommandRecord) -> bytes | None:
    if ENTITY_KEY not in members:
        return record.key
    key = _string(members[ENTITY_KEY], ENTITY_KEY)
    return record.key if key is None else key.encode()


def _payload(raw: msgspec.Raw | None) -> bytes | None:
    if raw is None:
        return b""  # only an explicit null is a tombstone, since a missing payload is easily a mistake
    if _is_null(raw, "payload"):
        return None
    members = _members(raw, "payload")
    for name in members:
        if name not in PAYLOADS:
            raise InvalidCommand(f"payload.{name}", f"is not known; use one of {', '.join(PAYLOADS)}")
    if len(members) != 1:
        raise InvalidCommand("payload", f"must have exactly one of {', '.join(PAYLOADS)}")
    ((form, content),) = members.items()
    if form == "json":
        return bytes(content)
    path = f"payload.{form}"
    text = _string(content, path)
    if text is None:
        raise InvalidCommand(path, "must be string")
    try:
        return text.encode() if form == "text" else parse_base64(text)
    except ValueError as error:
        raise InvalidCommand(path, str(error)) from None


def _user_headers(raw: msgspec.Raw) -> Headers:
    value = _value(raw, USER_HEADERS)
    if value is None:
        return []
    if not isinstance(value, dict):
        raise InvalidCommand(USER_HEADERS, "must be a JSON object")
    headers: Headers = []
    for name, text in value.items():
        if name.startswith(CONTROL_PREFIX):
            raise InvalidCommand(
                f"{USER_HEADERS}.{name}", f"names that begin with {CONTROL_PREFIX} are reserved for the scheduler"
            )
        if text is not None and not isinstance(text, str):
            raise InvalidCommand(f"{USER_HEADERS}.{name}", "must be string or null")
        headers.append((name, None if text is None else text.encode()))
    return headers


def _record_headers(record: CommandRecord) -> Headers:
    headers = []
    for header in record.headers:
        if header[0] == REQUESTED_BY:  # added by a worker, not a header of the message
            continue
        if header[0] in OF_WORKERS:
            raise not_ours(header[0])
        if header[0].startswith(CONTROL_PREFIX):
            raise InvalidCommand(
                header[0],
                "is a control header, but this command is in the JSON form: put the field into the JSON object",
            )
        if header[0] != CONTENT_TYPE or not is_json_command(header[1]):
            headers.append(header)
    return headers


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a label's value must be string, not {shown(repr(value))}")
    return value


def _kind_of_many(raw: msgspec.Raw) -> str | None:
    """Return "array" or "object" if the value is one; otherwise None."""
    return {b"[": "array", b"{": "object"}.get(bytes(memoryview(raw)[:1]))


def _string(raw: msgspec.Raw, path: str) -> str | None:
    """Return a string, or None for null."""
    value = False if _kind_of_many(raw) else _value(raw, path)
    if value is not None and not isinstance(value, str):
        raise InvalidCommand(path, "must be string")
    return value


def _value(raw: msgspec.Raw, path: str) -> Any:
    try:
        return read(raw)
    except UNREADABLE as error:
        raise InvalidCommand(path, f"is not JSON: {error}") from None


def _is_null(raw: msgspec.Raw, path: str) -> bool:
    try:
        return is_null(raw)
    except UNREADABLE as error:
        raise InvalidCommand(path, f"is not JSON: {error}") from None


def _value_or_none(data: bytes | None) -> Any:
    try:
        return None if data is None else read(data)
    except UNREADABLE:
        return None


def _at_path(members: dict[str, Any], path: str) -> Any:
    group, _, name = path.rpartition(".")
    inner = members.get(group) if group else members
    return inner.get(name) if isinstance(inner, dict) else None


JSON = JsonDialect()
JSON_OF_OTHERS = JsonDialect(may_end_in_any=True)
"""The JSON form in topics of other schedulers."""
