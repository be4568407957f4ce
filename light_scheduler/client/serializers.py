"""Convert values to payloads and back. A client without a serializer takes bytes.

With every serializer, bytes are sent unchanged and None is a tombstone.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from light_scheduler.errors import FormatError, InvalidCommand

from .options import ScheduleRequest

T = TypeVar("T")

_FRAME = struct.Struct(">bI")
"""Prefix of Avro with a schema registry: a zero byte, and the id of the schema."""


class Serializer(Protocol):
    """Writes and reads payloads."""

    def serialize(self, value: Any) -> bytes:
        """Return the payload of a value. May raise any error; the client converts it to InvalidCommand."""
        ...

    def deserialize(self, payload: bytes | None) -> Any:
        """Return the value of a payload. Raises FormatError if it is invalid or a tombstone."""
        ...


class MsgspecSerializer(Generic[T]):
    """Values of a type, such as a `msgspec.Struct`, a dataclass or a TypedDict, as JSON or MessagePack."""

    def __init__(self, type: type[T], encoding: Literal["json", "msgpack"] = "json") -> None:
        self._encoder: Any = msgspec.json.Encoder() if encoding == "json" else msgspec.msgpack.Encoder()
        self._decoder: Any = msgspec.json.Decoder(type) if encoding == "json" else msgspec.msgpack.Decoder(type)

    def serialize(self, value: T) -> bytes:
        payload: bytes = self._encoder.encode(value)
        return payload

    def deserialize(self, payload: bytes | None) -> T:
        try:
            value: T = self._decoder.decode(_content(payload))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FormatError(f"the payload cannot be read: {error}") from error
        return value


class JsonSerializer(MsgspecSerializer[Any]):
    """Dicts, lists, text, numbers and dates as JSON."""

    def __init__(self) -> None:
        super().__init__(Any)


class AvroSerializer:
    """Values by an Avro schema, given as a mapping. Needs the extra `avro`.

    With `schema_id`, payloads begin with a zero byte and this id (four bytes), as consumers with a schema registry
    expect. Register the schema there yourself; nothing is looked up.
    """

    def __init__(self, schema: Mapping[str, Any], *, schema_id: int | None = None) -> None:
        """Raises InvalidCommand for an invalid schema."""
        from fastavro import parse_schema
        from fastavro.schema import SchemaParseException, UnknownType

        try:
            self._schema = parse_schema(dict(schema))
        except (SchemaParseException, UnknownType, KeyError) as error:
            raise InvalidCommand("schema", f"is not an Avro schema: {error!r}") from error
        self._frame = b"" if schema_id is None else _FRAME.pack(0, schema_id)

    def serialize(self, value: Any) -> bytes:
        from fastavro import schemaless_writer

        written = io.BytesIO()
        written.write(self._frame)
        schemaless_writer(written, self._schema, value, strict=True)
        return written.getvalue()

    def deserialize(self, payload: bytes | None) -> Any:
        from fastavro import schemaless_reader

        content = _content(payload)
        if not content.startswith(self._frame):
            raise FormatError("the payload was not written with the schema of this id")
        body = io.BytesIO(content[len(self._frame) :])
        try:
            value = schemaless_reader(body, self._schema, None)
        except (EOFError, IndexError, ValueError, TypeError, OverflowError, struct.error) as error:
            raise FormatError(f"the payload is not Avro of this schema: {error!r}") from error
        if body.read(1):
            raise FormatError("the payload is longer than a value of this schema")
        return value


def _content(payload: bytes | None) -> bytes:
    if payload is None:
        raise FormatError("the message is a tombstone: it has no payload")
    return payload


def serialized(serializer: Serializer | None, request: ScheduleRequest) -> ScheduleRequest:
    """Return a request with its payload as bytes. Raises InvalidCommand if the value cannot be serialised."""
    payload = request.get("payload")
    if serializer is None or payload is None or isinstance(payload, bytes):
        return request
    return {**request, "payload": payload_of(serializer, payload)}


def payload_of(serializer: Serializer | None, value: Any) -> Any:
    """Return the payload of a value. Bytes and None are returned unchanged, and so is any value without a
    serializer."""
    if serializer is None or value is None or isinstance(value, bytes):
        return value
    try:
        return serializer.serialize(value)
    except Exception as error:
        raise InvalidCommand("payload", f"cannot be written by {type(serializer).__name__}: {error!r}") from error
