"""The common base of the dialects of other schedulers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from light_scheduler.model import DEFAULT_TENANT, Command, Entry, Headers
from light_scheduler.wire.content_type import CONTENT_TYPE, is_json_command
from light_scheduler.wire.dialect import Envelope, Plain, PlainTask
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.json_commands import JSON, JSON_OF_OTHERS
from light_scheduler.wire.record import CommandRecord

from .reading import Given, first_headers, id_of

KEY = "key"
VALUE = "value"
"""Names of the parts of a record in errors, other than headers."""


class Traced(NamedTuple):
    """The schedule that a message names. `topic` and `partition` are those of its command; None: not named."""

    tenant: str
    id: str
    topic: str | None = None
    partition: int | None = None


class CompatibleDialect(ABC):
    """A dialect of another scheduler. Records with the content type of JSON commands are read in the JSON form."""

    name: ClassVar[str]
    has_tenants: ClassVar[bool] = False
    """Whether its records name tenants, where they name the id."""
    leaves_traces: ClassVar[bool] = True
    """Whether its messages name their schedules."""
    names: ClassVar[Mapping[str, str]]
    """The senders' names of fields for errors, by `at`, `id`, `target-topic`, and so on."""

    forwards = False
    """A record with a key stays in the partition that its sender's partitioner chose."""

    has_schemas = False
    has_tasks = False

    def plain(self, record: CommandRecord) -> Plain | None:  # noqa: ARG002 - for dialects with a fast path
        return None

    def task(self, record: CommandRecord) -> PlainTask | None:  # noqa: ARG002 - as above
        return None

    def decode(self, record: CommandRecord) -> Command:
        headers = first_headers(record)
        is_json = is_json_command(headers.get(CONTENT_TYPE))
        return JSON_OF_OTHERS.decode(record) if is_json else self.read(record, headers)

    @abstractmethod
    def read(self, record: CommandRecord, headers: Given) -> Command:
        """Read a record of the other scheduler, with its headers by name.

        Raises InvalidCommand with the sender's name of the field.
        """

    def field_name(self, record: CommandRecord, field: str) -> str:
        if _is_json(record):
            return JSON.field_name(record, field)
        name = field.removeprefix(CONTROL_PREFIX)
        return self.names.get(name, name)

    def salvage(self, record: CommandRecord) -> Envelope:
        if _is_json(record):
            return JSON.salvage(record)
        tenant, id = self.whose(record)
        is_known = id is not None or not self.has_tenants
        return Envelope("cancel" if self.cancels(record) else "schedule", tenant, id, None, is_tenant_known=is_known)

    def whose(self, record: CommandRecord) -> tuple[str, str | None]:
        """Return the tenant and the id of a record, if readable. Never raises."""
        return DEFAULT_TENANT, id_of(record.key)

    def cancels(self, record: CommandRecord) -> bool:
        """Return whether a record is clearly a cancellation. Never raises."""
        return record.value is None

    def delivered(
        self,
        entry: Entry,
        fired_at: int,  # noqa: ARG002 - for dialects that write it
        source_topic: bytes,
    ) -> tuple[bytes | None, Headers]:
        return entry.schedule.payload, [*entry.schedule.headers, *self.trace(entry, source_topic)]

    def fired_headers(self, fired_at: int, source_topic: bytes) -> None:  # noqa: ARG002 - none of them has a fast path
        return None

    def trace(self, entry: Entry, source_topic: bytes) -> Headers:  # noqa: ARG002 - for dialects that have any
        """Return the headers that the other scheduler adds to a message."""
        return []

    def traced(
        self,
        key: bytes | None,  # noqa: ARG002 - for dialects whose messages have the key of their command
        value: bytes | None,  # noqa: ARG002 - and its value
        headers: Headers,  # noqa: ARG002 - for dialects that add some
    ) -> Traced | None:
        """Return the schedule that a message names, if it looks like one that `delivered` makes. Never raises."""
        return None

    def needs_schemas(self, records: Sequence[CommandRecord]) -> bool:  # noqa: ARG002 - for dialects with a schema
        return False

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:  # noqa: ARG002 - for dialects with a schema
        return ()


def _is_json(record: CommandRecord) -> bool:
    return is_json_command(first_headers(record).get(CONTENT_TYPE))
