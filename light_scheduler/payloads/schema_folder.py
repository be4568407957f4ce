"""Avro schemas in a folder, by fingerprint. Used only in the decoding process.

A payload in Avro's single-object encoding:    0xC3 0x01 | CRC-64-AVRO of its schema, 8 bytes, lowest first | Avro

https://avro.apache.org/docs/current/specification/#single-object-encoding
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .fast_avro import fast_avro

ALGORITHM = "CRC-64-AVRO"
PATTERN = "*.avsc"


class SchemaFolder:
    """The schemas in a folder. Added files are found when a payload needs them.

    A schema may refer to another one in the folder by its full name, which must then be the name of that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schemas: dict[str, Any] = {}
        self._read_as: list[tuple[str, int, int]] = []
        self.broken: list[str] = []
        """Files that are not valid Avro schemas, and the reasons. All others can be used."""

    def read(self) -> None:
        """Read all files, unless none has changed. Raises ValueError if the path is not a folder, LookupError,
        OSError."""
        fastavro = fast_avro()
        if not self._path.is_dir():
            raise ValueError(f"{self._path} is not a folder")
        files = sorted(self._path.glob(PATTERN))
        read_as = [_state_of(file) for file in files]
        if read_as == self._read_as:
            return
        self._read_as, self.broken = read_as, []
        for file in files:
            try:
                schema = fastavro.schema.load_schema(str(file))
                canonical = fastavro.schema.to_parsing_canonical_form(schema)
                self._schemas[fastavro.schema.fingerprint(canonical, ALGORITHM)] = schema
            except Exception as error:  # noqa: BLE001 - a file can be anything
                self.broken.append(f"{file} is no Avro schema: {type(error).__name__}: {error}")

    def of(self, fingerprint: bytes) -> Any:
        """Return the schema with a fingerprint, which is in a payload's byte order. Raises what `read` does."""
        name = fingerprint.hex()
        if name not in self._schemas:
            self.read()
        if name not in self._schemas:
            missing = f"no schema in {self._path} has the fingerprint {fingerprint[::-1].hex()}"
            raise LookupError("; ".join([missing, *self.broken]))
        return self._schemas[name]


def _state_of(file: Path) -> tuple[str, int, int]:
    """Return a value that changes whenever the file changes."""
    try:
        stat = file.stat()
    except OSError:  # reading it will report the reason
        return str(file), 0, 0
    return str(file), stat.st_mtime_ns, stat.st_size
