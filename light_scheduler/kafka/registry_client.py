"""The HTTP client of a schema registry: three requests, and what the answers say.

RegistryError                   the registry does not answer what it was asked; the text says why
├── RegistryUnavailableError    ... and may do so later
│   └── RegistryDeniedError     ... once somebody corrects a right or a password
└── SchemaRefusedError          ... since it does not take a schema
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
"""The registry's own codes, of a subject, a version and a schema: another 404 is of something that is no registry."""
_SAYS_NOTHING = frozenset({408, 429})
"""Statuses of the client's faults that say nothing about a schema."""
_SHOWN = 200
"""Bytes of an answer that refuses a schema."""


Body = TypeVar("Body")


class Reference(msgspec.Struct):
    """A schema that another one refers to: a version of a subject. `name` is that of a type which it defines."""

    name: str
    subject: str
    version: int


class RegisteredSchema(msgspec.Struct):
    """A schema of the registry: the body of an answer."""

    schema: str
    schemaType: str = "AVRO"  # noqa: N815 - the registry's name
    references: list[Reference] = []


class RegistryError(Exception):
    """The registry does not answer what it was asked; the text says why."""


class RegistryUnavailableError(RegistryError):
    """It may answer later."""


class RegistryDeniedError(RegistryUnavailableError):
    """We may not ask it."""


class SchemaRefusedError(RegistryError):
    """It does not take a schema."""


class _Registered(msgspec.Struct):
    """The body of the answer to a schema that was registered, or is already."""

    id: int


class _Refusal(msgspec.Struct):
    """The body of an error response."""

    error_code: int


class RegistryClient:
    """Asks one registry, over connections that stay until `close`. Its methods raise RegistryUnavailableError."""

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def by_id(self, id: int) -> RegisteredSchema | None:
        """Return the schema of an id; None: the registry does not have it."""
        return await self._get(f"/schemas/ids/{id}")

    async def by_version(self, subject: str, version: int) -> RegisteredSchema | None:
        """Return the schema of a version of a subject, also of a deleted one: others still refer to it."""
        return await self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true")

    async def id_of(self, subject: str, schema: Mapping[str, Any]) -> int:
        """Return the id of a schema under a subject; a schema that is not there yet is registered.

        Raises SchemaRefusedError as well.
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
        """Return status and body of an answer, if we may ask."""
        try:
            if self._session is None:
                self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
            place = URL(str(URL(self._access.address)).rstrip("/") + path, encoded=True)
            headers = self._access.headers() | ({} if data is None else {"Content-Type": MEDIA_TYPE})
            async with self._session.request(method, place, headers=headers, data=data) as response:
                status, body = response.status, await response.read()
        except Exception as error:  # whatever it is, who needs the answer asks again
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
