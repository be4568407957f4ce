"""Decodes one payload: with the hook; if that does not know it, as Avro; else as JSON. Runs only in the decoding
process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, Literal

import msgspec

from .fast_avro import fast_avro
from .job import CONTAINER, MOST_BYTES, SINGLE_OBJECT, SINGLE_OBJECT_BYTES, Decoded, Job
from .masks import Masks
from .schema_folder import SchemaFolder

Hook = Callable[[bytes, list[tuple[str, bytes | None]], str], Any]
"""(payload, headers in order, target topic) -> any JSON value, or text; `NotImplemented` if it does not know the
payload."""

MOST_ERROR = 500

_encode = msgspec.json.Encoder(decimal_format="number").encode


class _TooLargeError(ValueError):
    def __init__(self) -> None:
        super().__init__(f"it is larger than {MOST_BYTES >> 20} MiB")


def decoded(job: Job, hook: Hook | None, schemas: SchemaFolder | None = None) -> Decoded | None:
    """Return the decoded payload; None if nothing here can decode it. Errors are returned as results."""
    masks = Masks(job.masked)
    if hook is not None:
        found = _guarded("hook", lambda: _hooked(job, hook, masks))
        if found is not None:
            return found
    if job.trouble is not None:
        return Decoded(by="avro", error=job.trouble)
    if job.schema is not None:
        return _guarded("avro", lambda: _json("avro", _framed(job), masks))
    if schemas is not None and job.is_single_object:
        return _guarded("avro", lambda: _json("avro", _single(job.payload, schemas), masks))
    if job.payload.startswith(CONTAINER):
        return _guarded("avro", lambda: _json("avro", _contained(job.payload), masks))
    return _guarded("json", lambda: _masked_json(job.payload, masks)) if masks else None


def _guarded(by: Literal["hook", "avro", "json"], decode: Callable[[], Decoded | None]) -> Decoded | None:
    try:
        return decode()
    except RecursionError:
        return Decoded(by=by, error="it is nested too deeply")
    except MemoryError:
        return Decoded(by=by, error="it takes too much memory")
    except Exception as error:  # noqa: BLE001 - a hook's errors, and those of Avro, are of any kind
        name = type(error).__name__
        kind = name if name.isidentifier() else "Exception"  # `web.records.decoding` recognises kinds by that
        return Decoded(by=by, error=_printable(f"{kind}: {error}"[:MOST_ERROR]))


def _hooked(job: Job, hook: Hook, masks: Masks) -> Decoded | None:
    value = hook(job.payload, job.headers, job.topic)
    if value is NotImplemented:
        return None
    if not isinstance(value, str):
        return _json("hook", value, masks)
    if len(value.encode()) > MOST_BYTES:
        raise _TooLargeError
    return Decoded(by="hook", text=value)


def _framed(job: Job) -> Any:
    assert job.schema is not None
    return _value(job.payload, job.skip, fast_avro().parse_schema(msgspec.json.decode(job.schema)))


def _single(payload: bytes, schemas: SchemaFolder) -> Any:
    fingerprint = payload[len(SINGLE_OBJECT) : SINGLE_OBJECT_BYTES]
    return _value(payload, SINGLE_OBJECT_BYTES, schemas.of(fingerprint))


def _value(payload: bytes, skip: int, schema: Any) -> Any:
    """Return the value after the first `skip` bytes of a payload, which must fill the rest."""
    stream = BytesIO(payload)
    stream.seek(skip)
    value = fast_avro().schemaless_reader(stream, schema, None)
    if (rest := len(payload) - stream.tell()) > 0:
        raise ValueError(f"{rest} bytes are left over")
    return value


def _contained(payload: bytes) -> Sequence[Any]:
    """Return the records in an object container file."""
    records, size = [], 0
    for record in fast_avro().reader(BytesIO(payload)):
        records.append(record)
        size += len(_encode(record))
        if size > MOST_BYTES:
            raise _TooLargeError
    return records


def _masked_json(payload: bytes, masks: Masks) -> Decoded | None:
    if payload.lstrip()[:1] not in (b"{", b"["):
        return None  # a bare number or text has no fields, and may be a value to mask
    try:
        return Decoded(by="json", json=masks.masked(payload).decode())
    except (ValueError, msgspec.DecodeError):
        return None  # not JSON


def _json(by: Literal["hook", "avro"], value: Any, masks: Masks) -> Decoded:
    encoded = _encode(value)
    if len(encoded) > MOST_BYTES:
        raise _TooLargeError
    return Decoded(by=by, json=(masks.masked(encoded) if masks else encoded).decode())


def _printable(text: str) -> str:
    """Return the text without lone surrogates, which JSON cannot contain."""
    return text.encode(errors="replace").decode()
