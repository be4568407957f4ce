"""The HTTP client of a schema registry.

RegistryError                   a request failed; the text says why
├── RegistryUnavailableError    ... but may succeed later
│   └── RegistryDeniedError     ... once a right or a password is corrected
└── SchemaRefusedError          ... because the registry refuses a schema
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from light_scheduler.connection.registry import RegistryAccess

TIMEOUT_S = 5.0
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_MISSING = frozenset({40_401, 40_402, 40_403})
"""The registry's own codes for a missing subject, version or schema. Any other 404 is not from a registry."""
_SAYS_NOTHING = frozenset({408, 429})
"""Client error statuses that say nothing about a schema."""
_SHOWN = 200
"""Maximum number of bytes of a refusal to show."""


Body = TypeVar("Body")


class Reference(msgspec.Struct):
    """A reference to a schema: a version of a subject. `name` is the name of a type that it defines."""

    name: str
    subject: str
    version: int


class RegisteredSchema(msgspec.Struct):
    """The body of an answer with a schema."""

    schema: str
    schemaType: str = "AVRO"  # noqa: N815 - the registry's name
    references: list[Reference] = []


class RegistryError(Exception):
    """A request to the registry failed; the text says why."""


class RegistryUnavailableError(RegistryError):
    """The request may succeed later."""


class RegistryDeniedError(RegistryUnavailableError):
    """The login or a right is missing."""


class SchemaRefusedError(RegistryError):
    """The registry refuses a schema."""


class _Registered(msgspec.Struct):
    """The body of the answer to a registration, also if the schema was registered already."""

    id: int


class _Refusal(msgspec.Struct):
    """The body of an error response."""

    error_code: int


class RegistryClient:
    """A client of one registry. Connections stay open until `close`. Its methods raise RegistryUnavailableError."""

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def by_id(self, id: int) -> RegisteredSchema | None:
        """Return the schema with an id; None if the registry does not have it."""
        return await self._get(f"/schemas/ids/{id}")

    async def by_version(self, subject: str, version: int) -> RegisteredSchema | None:
        """Return the schema of a subject's version; None if there is none.

        Includes deleted versions, since other schemas may still refer to them.
        """
        return await self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true")

    async def id_of(self, subject: str, schema: Mapping[str, Any]) -> int:
        """Return the id of a schema under a subject. Registers the schema if it is new.

        Also raises SchemaRefusedError.
        """
        data = msgspec.json.encode({"schema": msgspec.json.encode(schema).decode()})
        status, body = await self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", data)
        if status == 200:
            return _read(body, _Registered).id
        is_refused = 400 <= status < 500 and status not in _SAYS_NOTHING
        error_type = SchemaRefusedError if is_refused else RegistryUnavailableError
        raise error_type(f"it answers {status}: {body[:_SHOWN].decode(errors='replace')}")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _get(self, path: str) -> RegisteredSchema | None:
        status, body = await self._ask("GET", path)
        if status == 404 and _is_missing(body):
            return None
        if status != 200:
            raise RegistryUnavailableError(f"it answers {status}")
        return _read(body, RegisteredSchema)

    async def _ask(self, method: str, path: str, data: bytes | None = None) -> tuple[int, bytes]:
        """Send a request and return status and body. Raises RegistryDeniedError for 401 and 403."""
        try:
            if self._session is None:
                self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
            place = URL(str(URL(self._access.address)).rstrip("/") + path, encoded=True)
            headers = self._access.headers() | ({} if data is None else {"Content-Type": MEDIA_TYPE})
            async with self._session.request(method, place, headers=headers, data=data) as response:
                status, body = response.status, await response.read()
        except Exception as error:  # callers retry after any error
            raise RegistryUnavailableError(str(error) or type(error).__name__) from error
        if status in (401, 403):
            raise RegistryDeniedError(
                f"it answers {status}; check schema_registry_username, schema_registry_password and that user's rights"
            )
        return status, body


def _read(body: bytes, form: type[Body]) -> Body:
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.MsgspecError as error:
        raise RegistryUnavailableError(f"it does not answer like a schema registry: {error}") from error


def _is_missing(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Refusal).error_code in _MISSING
    except msgspec.MsgspecError:
        return False
