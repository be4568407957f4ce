"""Avro schemas in a folder, by their fingerprints. In the decoding process only.

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
    """The schemas of a folder. A file that is added is found when a payload needs it.

    A schema may refer to another one of the folder by its full name, which is then the name of that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schemas: dict[str, Any] = {}

    def read(self) -> None:
        """Read all files. Raises ValueError naming the one at fault."""
        fastavro = fast_avro()
        if not self._path.is_dir():
            raise ValueError(f"{self._path} is not a folder")
        for file in sorted(self._path.glob(PATTERN)):
            try:
                schema = fastavro.schema.load_schema(str(file))
                canonical = fastavro.schema.to_parsing_canonical_form(schema)
            except Exception as error:  # a file can be anything
                raise ValueError(f"{file} is no Avro schema: {type(error).__name__}: {error}") from error
            self._schemas[fastavro.schema.fingerprint(canonical, ALGORITHM)] = schema

    def of(self, fingerprint: bytes) -> Any:
        """Return the schema of a fingerprint, as it is written in a payload. Raises LookupError, ValueError."""
        name = fingerprint.hex()
        if name not in self._schemas:
            self.read()
        if name not in self._schemas:
            raise LookupError(f"no schema in {self._path} has the fingerprint {fingerprint[::-1].hex()}")
        return self._schemas[name]
