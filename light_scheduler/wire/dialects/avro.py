"""Avro values: framed for a schema registry, or plain in one of the schemas that their project publishes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import product
from typing import Any, NamedTuple

from light_scheduler.errors import ConfigurationError, InvalidCommand
from light_scheduler.wire.schema_references import own_name
from light_scheduler.wire.schemas import FRAME, MAGIC, Needed, Schemas, schema_id

try:
    import fastavro
except ImportError as error:
    raise ConfigurationError(
        "commands_topics", "the dialects skyuk and light4j need the extra `avro`: pip install 'light-scheduler[avro]'"
    ) from error


_FIRST_OF_THREE_BYTES = 0xFFFFFF
"""The last id whose frame begins with two zero bytes. A plain record can begin with one, such as if its time is 0."""


_FRAME_SIZE = FRAME.size
_FRAMED = b"\0"
"""The first byte of all frames."""

_SMALL_ID = b"\0\0"
"""The first bytes of a frame with an id up to `_FIRST_OF_THREE_BYTES`. No valid plain record begins with them."""


Place = tuple[int, int | None]
"""The start of the data after its frame, if any, and the number of the published schema for reading it byte by byte.

None stands for any published schema that fits. This is a plain tuple for speed, since one is looked up for nearly every
command.
"""

_WHOLE: Place = 0, None
_BEHIND_FRAME: Place = _FRAME_SIZE, None


class _Parsed(NamedTuple):
    """A parsed schema of the registry. `place` is the place of all its data; None if a decoder must read it."""

    schema: Any
    place: Place | None


class AvroForm:
    """Reads one kind of record, which is called `field` in errors.

    `published` are the schemas that senders use, newest first. They are tried for plain data, and for framed data if
    there is no registry. With a registry, framed data is read with its own schema from `schemas`. `variants` are tried
    after the published schemas, and used if data fits exactly one of them. The first `layouts` published schemas can be
    read byte by byte.
    """

    def __init__(
        self,
        field: str,
        published: Sequence[Any],
        schemas: Schemas | None,
        variants: Sequence[Any] = (),
        layouts: int = 1,
    ) -> None:
        self._field = field
        self._published = [fastavro.parse_schema(schema) for schema in published]
        self._variants = [fastavro.parse_schema(schema) for schema in variants]
        self._schemas = schemas
        self._layouts = [_layout(schema) for schema in self._published[:layouts]]
        self._parsed: Needed[bytes, _Parsed] = Needed() if schemas is None else Needed(schemas.monotonic)
        """By frame. These schemas need not be in `schemas` any more."""
        self._usual: tuple[bytes, Place] | None = None
        """The last frame whose schema can be read byte by byte."""

    def may_need(self, data: Iterable[bytes | None]) -> bool:
        """Return whether `schema_ids` may return any id for these data. Much faster than calling it for each."""
        if self._schemas is None:
            return False
        given = list(filter(None, data))
        if not given:
            return False
        first, last = min(given)[:_FRAME_SIZE], max(given)[:_FRAME_SIZE]
        # Values that sort between two with the same prefix have that prefix too. Nearly always, there is one frame.
        frames = {first} if first == last else {each[:_FRAME_SIZE] for each in given}
        unknown = [frame for frame in frames if frame[:1] == _FRAMED and not self._parsed.has(frame)]
        return unknown != []

    def schema_ids(self, data: bytes | None) -> tuple[int, ...]:
        """Return the id of the registry's schema that data needs, if that schema was not used yet."""
        if self._schemas is None or data is None or data[:1] != _FRAMED or self._parsed.has(data[:_FRAME_SIZE]):
            return ()
        id = self._schema_id(data)
        return () if id is None else (id,)

    def read(self, data: bytes) -> dict[str, Any]:
        """Decode a record to a dictionary by field name. Raises InvalidCommand."""
        id = self._schema_id(data)
        body = data if id is None else data[FRAME.size :]
        if id is None or self._schemas is None:
            return self._by_any(body)
        schema = self._writers(data[:_FRAME_SIZE]).schema
        try:
            return _read(body, schema)
        except Exception as error:  # noqa: BLE001 - the decoder raises many kinds of errors for invalid Avro
            raise self._no_avro(schema, _reason(error)) from None

    def _by_any(self, body: bytes) -> dict[str, Any]:
        """Decode data with the first published schema that fits, otherwise with the only variant that fits."""
        first, *others = self._published
        try:
            return _read(body, first)
        except Exception as error:  # noqa: BLE001 - as above
            reason = _reason(error)
        reading = _Reading(body)
        for schema in others:
            if (record := reading.record(schema)) is not None:
                return record
        found = self._of_variants(reading)
        if len(found) == 1:
            return found[0]
        if found:
            reason = "it can be read in several ways: frame it, and name a schema registry"
        raise self._no_avro(first, reason)

    def _no_avro(self, schema: Any, reason: str) -> InvalidCommand:
        return InvalidCommand(self._field, f"is not Avro of the schema {_name(schema)} ({reason})")

    def body_at(self, data: bytes) -> Place | None:
        """Return the place of data that can be read byte by byte.

        None if its schema has another layout or is unknown. Data without a frame is not checked, and may be anything.
        """
        usual = self._usual
        if usual is not None and data.startswith(usual[0]):
            return usual[1]
        if data[:1] != _FRAMED:
            return _WHOLE
        frame = data[:_FRAME_SIZE]
        parsed = self._parsed.kept.get(frame)
        if parsed is None:
            if data[:2] != _SMALL_ID or len(data) < _FRAME_SIZE:
                return _WHOLE
            return _BEHIND_FRAME if self._schemas is None else self._found(frame)
        if parsed.place is not None:
            self._usual = frame, parsed.place
        return parsed.place

    def _found(self, frame: bytes) -> Place | None:
        try:
            return self._writers(frame).place
        except InvalidCommand:  # the schema may be known later
            return None

    def _schema_id(self, data: bytes | None) -> int | None:
        """Return the id in a frame; None for plain data, even if it begins like a frame."""
        id = schema_id(data)
        if id is None or data is None or id <= _FIRST_OF_THREE_BYTES:
            return id
        return None if any(_read_or_none(data, schema) is not None for schema in self._published) else id

    def _of_variants(self, reading: _Reading) -> list[dict[str, Any]]:
        """Return the different records that data can be decoded to. An empty map counts as null."""
        found: list[dict[str, Any]] = []
        for schema in self._variants:
            record = reading.record(schema)
            if record is not None:
                record = {name: None if value == {} else value for name, value in record.items()}
                if record not in found:
                    found.append(record)
        return found

    def with_field(self, data: bytes, name: str, value_of: Callable[[dict[str, Any], Any], Any]) -> bytes:
        """Return data with a new value in a field: `value_of(record, value)`, with the value in the published schema.

        Returns data unchanged if it fits no published schema, or its sender writes that field in another way.
        """
        id = self._schema_id(data)
        frame = b"" if id is None else data[: FRAME.size]
        body = data[len(frame) :]
        for schema in self._writing_alike(frame, name):
            with suppress(Exception):  # many kinds of errors, as above; data is then returned unchanged
                record = _read(body, schema)
                if _written(record, schema) == body:
                    known = record if id is None or self._schemas is None else self._known(data, record)
                    return frame + _written({**record, name: value_of(known, record[name])}, schema)
        return data

    def is_of_registry(self, data: bytes) -> bool:
        """Return whether data was written with a schema of the registry."""
        return self._schemas is not None and self._schema_id(data) is not None

    def is_known(self, data: bytes) -> bool:
        """Return whether the schema of data is known, or data is not `is_of_registry`."""
        if not self.is_of_registry(data):
            return True
        try:
            self._writers(data[:_FRAME_SIZE])
        except InvalidCommand:
            return False
        return True

    def _writing_alike(self, frame: bytes, name: str) -> Sequence[Any]:
        """Return the published schemas that write a field like the schema of a frame; all if that is unknown."""
        published = self._published[: len(self._layouts)]
        if self._schemas is None or not frame:
            return published
        try:
            writers = self._writers(frame).schema
        except InvalidCommand:
            return published
        return [schema for schema in published if _form_of(name, schema) == _form_of(name, writers)]

    def written(self, record: Mapping[str, Any], id: int | None) -> bytes:
        """Encode a record with the newest published schema, framed with its id unless that is None.

        Raises InvalidCommand if the record does not fit the schema.
        """
        try:
            body = _written(record, self._published[0])
        except Exception as error:  # noqa: BLE001 - the encoder raises many kinds of errors for invalid records
            raise InvalidCommand(self._field, f"is not a record of {_name(self._published[0])} ({error})") from None
        return body if id is None else FRAME.pack(MAGIC, id) + body

    def _known(self, data: bytes, record: dict[str, Any]) -> dict[str, Any]:
        """Decode data with its sender's schema. Returns `record` if that schema is unknown."""
        try:
            return self.read(data)
        except InvalidCommand:
            return record

    def _writers(self, frame: bytes) -> _Parsed:
        """Return the schema of a frame. Raises InvalidCommand."""
        parsed = self._parsed.kept.get(frame)
        if parsed is None:
            assert self._schemas is not None
            id = int.from_bytes(frame[1:])
            try:
                schema = fastavro.parse_schema(self._schemas.get(id))
                _require_bounded(schema, {}, ())
            except Exception as error:  # noqa: BLE001 - the registry also accepts invalid Avro schemas
                raise InvalidCommand(self._field, f"has the schema of id {id}: {error}") from None
            if not isinstance(schema, dict) or schema.get("type") != "record":
                raise InvalidCommand(self._field, f"has the schema of id {id}, which is not the schema of a record")
            layout = _layout(schema)
            is_usual = frame[:2] == _SMALL_ID and layout in self._layouts
            parsed = _Parsed(schema, (_FRAME_SIZE, self._layouts.index(layout)) if is_usual else None)
            self._parsed.put(frame, parsed)
        return parsed


def nullabilities(schema: Mapping[str, Any], names: Collection[str]) -> list[dict[str, Any]]:
    """Return all variants of a record's schema in which the fields in `names` are nullable or required."""
    choices = []
    for field in schema["fields"]:
        given = field["type"]
        required = given[1] if isinstance(given, list) else given
        choices.append((given,) if field["name"] not in names else (given, ["null", required], required))
    made: list[dict[str, Any]] = []
    for types in product(*choices):
        fields = [{"name": field["name"], "type": type} for field, type in zip(schema["fields"], types, strict=True)]
        changed = {**schema, "fields": fields}
        if changed not in made and types != tuple(choice[0] for choice in choices):
            made.append(changed)
    return made


def _require_bounded(schema: Any, sizes: dict[str, bool], inside: tuple[str, ...]) -> bool:
    """Return whether a value takes any bytes. `sizes` has the named types found so far.

    Raises ValueError for schemas in which few bytes can decode to large values, since fastavro limits neither recursive
    records nor items without bytes.
    """
    if isinstance(schema, list):
        for branch in schema:
            _require_bounded(branch, sizes, inside)
        return True
    if not isinstance(schema, dict):
        if schema in inside:
            raise ValueError(f"{own_name(schema)} contains itself")
        return bool(sizes.get(schema, schema != "null"))
    kind, name = schema["type"], schema.get("name", "")
    if kind in ("record", "error"):
        fields = [_require_bounded(field["type"], sizes, (*inside, name)) for field in schema["fields"]]
        sizes[name] = any(fields)
    elif kind == "fixed":
        sizes[name] = schema["size"] > 0
    elif kind == "array":
        if not _require_bounded(schema["items"], sizes, inside):
            raise ValueError("the items of an array have no bytes")
        return True
    elif kind == "map":
        _require_bounded(schema["values"], sizes, inside)
        return True
    elif kind != "enum":
        return _require_bounded(kind, sizes, inside)
    return sizes.setdefault(name, True)


def _layout(schema: Any) -> Any:
    """Return the layout of a parsed schema, which decides how to read data: names of fields, but not of types."""
    if isinstance(schema, list):
        return tuple(_layout(branch) for branch in schema)
    if not isinstance(schema, dict):
        return schema
    kind = schema["type"]
    if kind == "record":
        return kind, tuple((field["name"], _layout(field["type"])) for field in schema["fields"])
    if kind == "enum":
        return kind, tuple(schema["symbols"])
    if kind in ("map", "array"):
        return kind, _layout(schema["values" if kind == "map" else "items"])
    if kind == "fixed" or "logicalType" in schema:
        return kind, schema.get("size"), schema.get("logicalType")
    return _layout(kind)


def _form_of(name: str, schema: Any) -> Any:
    """Return the layout of a record's field; None if it does not exist. An instant in ms counts as a long."""
    type = next((field["type"] for field in schema["fields"] if field["name"] == name), None)
    branches = type if isinstance(type, list) else [type]
    forms = [
        "long" if isinstance(each, dict) and each.get("logicalType") == "timestamp-millis" else _layout(each)
        for each in branches
    ]
    return forms if isinstance(type, list) else forms[0]


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _name(schema: Any) -> str:
    return own_name(str(schema["name"]))


def _read(body: bytes, schema: Any) -> dict[str, Any]:
    stream = BytesIO(body)
    record = fastavro.schemaless_reader(stream, schema, None)
    if stream.tell() != len(body):
        raise ValueError(f"{len(body) - stream.tell()} bytes are left over")
    assert isinstance(record, dict)
    return record


def _read_or_none(body: bytes, schema: Any) -> dict[str, Any] | None:
    try:
        return _read(body, schema)
    except Exception:  # noqa: BLE001 - the decoder raises many kinds of errors for invalid Avro
        return None


class _Reading:
    """Reads data with many similar schemas of a record. For each type, each place is read only once."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._known: dict[tuple[int, Any], tuple[Any, int] | None] = {}  # (start, type) -> (value, end)

    def record(self, schema: Any) -> dict[str, Any] | None:
        """Decode all data with a parsed schema; None if it does not fit."""
        record, at = {}, 0
        for field in schema["fields"]:
            wanted = at, _layout(field["type"])
            if wanted not in self._known:
                self._known[wanted] = self._read(at, field["type"])
            if (found := self._known[wanted]) is None:
                return None
            record[field["name"]], at = found
        return record if at == len(self._body) else None

    def _read(self, at: int, type: Any) -> tuple[Any, int] | None:
        stream = BytesIO(self._body)
        stream.seek(at)
        try:
            return fastavro.schemaless_reader(stream, type, None), stream.tell()
        except Exception:  # noqa: BLE001 - the decoder raises many kinds of errors for invalid Avro
            return None


def _written(record: Mapping[str, Any], schema: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schema, record)
    return stream.getvalue()
