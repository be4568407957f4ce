"""Shows payloads and headers: decoded on request, and with masked fields left out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import UNSET

from light_scheduler.access import Identity, Role
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.payloads.decoder import Decoder
from light_scheduler.payloads.job import Decoded, Job
from light_scheduler.payloads.masks import Masks
from light_scheduler.settings import Settings
from light_scheduler.web.access.guard import IDENTITY
from light_scheduler.web.cluster.answers import is_local
from light_scheduler.web.forms.documents import Content, DecodedView, HeaderView, ScheduleDetail, TargetView
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits.turns import Turns
from light_scheduler.wire.schemas import FRAME, Schemas, schema_id

from .dead_letter_documents import DeadLetterDetail

PAYLOADS_WAITING = 32
PATIENCE_S = 5.0
"""How long a payload waits for its turn: they are decoded one at a time."""

SCHEMA_TIMEOUT_S = 2.0

D = TypeVar("D", ScheduleDetail, DeadLetterDetail)


class Decoding:
    """Decodes by a worker's settings `payload_decoder`, `payload_schemas`, `schema_registry` and `masked_fields`."""

    def __init__(self, settings: Settings) -> None:
        self._fields = settings.masked_fields
        self._masks = Masks(self._fields)
        self._has_hook = settings.payload_decoder is not None
        self._has_schemas = settings.payload_schemas is not None
        self._decoder = Decoder(settings.payload_decoder, settings.payload_schemas)
        access, effect = settings.registry, "payloads of its schema are not decoded"
        self._registry = None if access is None else SchemaRegistry(access, Schemas(), effect)
        self._turns = Turns("payloads to decode", at_work=1, waiting=PAYLOADS_WAITING, patience_s=PATIENCE_S)

    async def running(self, application: web.Application) -> AsyncIterator[None]:
        """Load hook and schemas, and release them when the application ends. Raises ConfigurationError."""
        del application
        await self._decoder.check()
        yield
        await self._decoder.close()
        if self._registry is not None:
            await self._registry.close()

    async def shown(self, found: D, topic: str | None, identity: Identity, *, is_asked: bool) -> D:
        """Return a schedule or a dead letter as an identity may see it; with `is_asked`, decoded.

        `topic` is the destination of the payload; None: it is a command, so there is no payload.
        """
        decoded = UNSET if not is_asked else await self._decoded(found, topic)
        if not self._masks:
            return msgspec.structs.replace(found, decoded=decoded)
        is_whole = may_see_masked(identity)
        if decoded and not is_whole:
            decoded = _without_details(decoded)
        if not is_whole and isinstance(found, ScheduleDetail):
            found = msgspec.structs.replace(found, target=_without_partition_key(found.target))
        return msgspec.structs.replace(
            found,
            decoded=decoded,
            payload=None if found.payload is None else _masked(found.payload, is_whole),
            headers=[self._header(header, is_whole) for header in found.headers],
        )

    def for_writers(self, handler: Handler) -> Handler:
        """Wrap a handler that returns payloads as they were sent: while fields are masked, it refuses identities that
        may not see them."""
        if not self._masks:
            return handler

        async def guarded(request: web.Request) -> web.StreamResponse:
            if not is_local(request) and not may_see_masked(request[IDENTITY]):
                raise ProblemError(
                    HTTPStatus.FORBIDDEN,
                    "This answer has payloads as they were sent, and this worker masks some of their fields "
                    f"(masked_fields). It needs a token with the role {Role.WRITE}.",
                )
            return await handler(request)

        return guarded

    def _header(self, header: HeaderView, is_whole: bool) -> HeaderView:
        if header.value is None or not self._masks.hides_header(header.name):
            return header
        return HeaderView(header.name, _masked(header.value, is_whole))

    async def _decoded(self, found: D, topic: str | None) -> DecodedView | None:
        if found.payload is None or topic is None:
            return None
        headers = [(each.name, None if each.value is None else each.value.data) for each in found.headers]
        job = await self._with_schema(
            Job(payload=found.payload.data, headers=headers, topic=topic, masked=self._fields)
        )
        is_known = job.names_schema or (self._has_schemas and job.is_single_object)
        if not (self._has_hook or self._masks or is_known):
            return None
        async with self._turns.turn():
            return _view(await self._decoder.decode(job))

    async def _with_schema(self, job: Job) -> Job:
        """Return the job with the schema whose id is in its payload."""
        id = schema_id(job.payload)
        if id is None or self._registry is None:
            return job
        schemas = self._registry.schemas
        if id not in schemas:
            trouble = await self._registry.trouble_getting(id, SCHEMA_TIMEOUT_S)
            if trouble is not None:
                return msgspec.structs.replace(job, trouble=trouble)
        try:
            schema = msgspec.json.encode(schemas.get(id))
        except (ValueError, RecursionError) as error:
            return msgspec.structs.replace(job, trouble=f"the schema of id {id}: {error}")
        return msgspec.structs.replace(job, schema=schema, skip=FRAME.size)


def may_see_masked(identity: Identity) -> bool:
    """Return whether an identity sees the values of masked fields: whoever may change schedules does."""
    return identity.role.includes(Role.WRITE)


def _masked(content: Content, is_whole: bool) -> Content:
    return msgspec.structs.replace(content, masked=True) if is_whole else Content(masked=True)


def _view(decoded: Decoded | None) -> DecodedView | None:
    if decoded is None:
        return None
    given = {name: value for name, value in msgspec.structs.asdict(decoded).items() if value is not None}
    return DecodedView(**given)


def _without_partition_key(target: TargetView) -> TargetView:
    """Leave out the partition key: it may be the value of a header, with the distribution by tenant."""
    return msgspec.structs.replace(target, partition_key=UNSET, partition_key_base64=UNSET)


def _without_details(decoded: DecodedView) -> DecodedView:
    """Reduce a decoding error to its kind: the message of an exception may quote masked values."""
    kind = None if decoded.error is UNSET else decoded.error.partition(":")[0]
    return msgspec.structs.replace(decoded, error=kind) if kind and kind.isidentifier() else decoded
