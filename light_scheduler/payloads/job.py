"""The protocol between a worker and its decoding process: messages in MessagePack, each after its length.

worker ── stdin: `Start`, then a `Job` at a time ──> `process`
       <──── stdout: `Started`, then a `Decoded` or null for each job ────
"""

from __future__ import annotations

from struct import Struct
from typing import Literal

import msgspec

LENGTH = Struct(">I")

TIME_LIMIT_S = 2.0
"""For one payload. The process is killed then."""

MOST_BYTES = 4 << 20
"""Of a payload that is decoded, and of the result."""

CONTAINER = b"Obj\x01"
"""The first bytes of an Avro object container file, which has its schema in it."""

SINGLE_OBJECT = b"\xc3\x01"
"""The first bytes of Avro's single-object encoding, before the fingerprint of its schema."""

SINGLE_OBJECT_BYTES = 10
"""Of both."""


class Start(msgspec.Struct, frozen=True):
    """The hook to load (`package.module:function`), if there is one, where modules are imported from, and the folder
    of Avro schemas, if there is one.
    """

    hook: str | None
    path: list[str]
    schemas: str | None = None


class Started(msgspec.Struct, frozen=True):
    """Whether the process can decode: `error` says why not, and then it ends. `no_schemas` says why the folder of
    schemas cannot be used, and `broken` which of its files; all else is decoded.
    """

    error: str | None = None
    no_schemas: str | None = None
    broken: list[str] = []


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A payload to decode. `schema` is that of Avro, as JSON, and the Avro begins at `skip`.

    `trouble` says why there is no schema although the payload names one.
    """

    payload: bytes
    headers: list[tuple[str, bytes | None]]
    topic: str
    masked: tuple[str, ...] = ()
    schema: bytes | None = None
    skip: int = 0
    trouble: str | None = None

    @property
    def is_single_object(self) -> bool:
        """Whether the payload can be Avro that names its schema by a fingerprint."""
        return self.payload.startswith(SINGLE_OBJECT) and len(self.payload) >= SINGLE_OBJECT_BYTES

    @property
    def names_schema(self) -> bool:
        """Whether the payload is Avro of a schema that is in it, or that a registry was asked for."""
        return self.schema is not None or self.trouble is not None or self.payload.startswith(CONTAINER)


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """A payload that was decoded, by what, and as what: exactly one of `json`, `text` and `error` is there."""

    by: Literal["hook", "avro", "json"]
    json: str | None = None
    text: str | None = None
    error: str | None = None
