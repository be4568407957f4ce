"""The protocol between a worker and its decoding process: messages in MessagePack, each prefixed with its length.

worker ── stdin: `Start`, then one `Job` at a time ──> `process`
       <──── stdout: `Started`, then a `Decoded` or null for each job ────
"""

from __future__ import annotations

from struct import Struct
from typing import Literal

import msgspec

LENGTH = Struct(">I")

TIME_LIMIT_S = 2.0
"""Time limit for one payload. Then the process is killed."""

MOST_BYTES = 4 << 20
"""Maximum bytes of a payload to decode, and of the result."""

CONTAINER = b"Obj\x01"
"""First bytes of an Avro object container file, which contains its schema."""

SINGLE_OBJECT = b"\xc3\x01"
"""First bytes of Avro's single-object encoding. The fingerprint of the schema follows."""

SINGLE_OBJECT_BYTES = 10
"""Bytes of marker and fingerprint together."""


class Start(msgspec.Struct, frozen=True):
    """The hook to load (`package.module:function`), the path for imports, and the folder of Avro schemas; hook and
    folder can be None."""

    hook: str | None
    path: list[str]
    schemas: str | None = None


class Started(msgspec.Struct, frozen=True):
    """Whether the process can decode. If not, `error` is the reason, and the process ends. `no_schemas` is the reason
    why the folder of schemas cannot be used, and `broken` lists unusable files in it; everything else is decoded."""

    error: str | None = None
    no_schemas: str | None = None
    broken: list[str] = []


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A payload to decode. `schema` is an Avro schema as JSON; the Avro data begins at `skip`.

    `trouble` is the reason why there is no schema although the payload names one.
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
        """Whether the payload may be Avro with a schema fingerprint."""
        return self.payload.startswith(SINGLE_OBJECT) and len(self.payload) >= SINGLE_OBJECT_BYTES

    @property
    def names_schema(self) -> bool:
        """Whether the payload is Avro with an embedded schema or a schema from a registry."""
        return self.schema is not None or self.trouble is not None or self.payload.startswith(CONTAINER)


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded payload, and the decoder: exactly one of `json`, `text` and `error` is set."""

    by: Literal["hook", "avro", "json"]
    json: str | None = None
    text: str | None = None
    error: str | None = None
