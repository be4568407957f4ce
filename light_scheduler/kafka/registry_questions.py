"""Questions to a schema registry over HTTP, and what its answers say."""

from __future__ import annotations

from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from light_scheduler.connection.registry import RegistryAccess

TIMEOUT_S = 5.0
_MISSING = frozenset({40_401, 40_402, 40_403})
"""The registry's own codes, of a subject, a version and a schema: another 404 is of something that is no registry."""


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


class RegistryUnavailableError(Exception):
    """The registry does not say whether it has a schema; the text says why."""


class RegistryDeniedError(RegistryUnavailableError):
    """We may not ask it."""


class _Refusal(msgspec.Struct):
    """The body of an error response."""

    error_code: int


class RegistryQuestions:
    """Asks one registry. Its methods return None for what the registry does not have, and raise
    RegistryUnavailableError if it does not say.
    """

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def by_id(self, id: int) -> RegisteredSchema | None:
        """Return the schema of an id."""
        return await self._get(f"/schemas/ids/{id}")

    async def by_version(self, subject: str, version: int) -> RegisteredSchema | None:
        """Return the schema of a version of a subject, also of a deleted one: others still refer to it."""
        return await self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _get(self, path: str) -> RegisteredSchema | None:
        try:
            if self._session is None:
                self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
            place = URL(str(URL(self._access.address)).rstrip("/") + path, encoded=True)
            async with self._session.get(place, headers=self._access.headers()) as response:
                status, body = response.status, await response.read()
        except Exception as error:  # whatever it is, commands wait for an answer: it is asked again
            raise RegistryUnavailableError(str(error) or type(error).__name__) from error
        if status == 404 and _is_missing(body):
            return None
        if status in (401, 403):
            raise RegistryDeniedError(
                f"it answers {status}; check schema_registry_username, schema_registry_password and that user's rights"
            )
        if status != 200:
            raise RegistryUnavailableError(f"it answers {status}")
        try:
            return msgspec.json.decode(body, type=RegisteredSchema)
        except msgspec.MsgspecError as error:
            raise RegistryUnavailableError(f"it does not answer like a schema registry: {error}") from error


def _is_missing(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Refusal).error_code in _MISSING
    except msgspec.MsgspecError:
        return False
