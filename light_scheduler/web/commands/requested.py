"""Builds a command in the JSON form from a request: path, query, headers and body together are one command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from light_scheduler.client.commands import CommandToSend
from light_scheduler.engine import with_default_target
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Command, ReplyTo, ScheduleCommand
from light_scheduler.model.tenant_rules import Tenant
from light_scheduler.web.access.requesters import MakeHeaders
from light_scheduler.wire import UnsentRecord, json_command
from light_scheduler.wire.build import ANY, TargetMissing
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND
from light_scheduler.wire.json_commands import JSON, JSON_OF_OTHERS, JsonDialect
from light_scheduler.wire.json_values import is_null

OF_STARRED = ("cancel", "pause", "resume", "trigger", "reschedule")
"""Commands for one schedule whose id may end in `*`, as ids of other schedulers may."""

_ELSEWHERE = ("reply_topic", "reply_partition", "correlation_id")


@dataclass(frozen=True)
class Requested:
    """A valid command of a request. `value` is its JSON form, without the reply address.

    `has_key` says that the request names the entity key; otherwise the key is the id. The command goes to the partition
    of its key, unless `place` (topic, partition) is set. If `place` has no partition, it goes to that of its key in
    this topic.
    """

    tenant: str
    id: str
    key: bytes
    value: bytes
    has_key: bool
    expected_version: int | None = None
    target_topic: str | None = None
    place: tuple[str, int | None] | None = None
    more_headers: MakeHeaders = lambda _: []

    def of_version(self, version: int) -> Requested:
        """Return the command for this version of its schedule. It must not have a version yet."""
        given = {"expected_version": str(version)}
        return replace(self, value=json_command(self.value, given), expected_version=version)

    def record(self, reply_to: ReplyTo | None) -> CommandToSend:
        """Return the command's record."""
        value = self.value
        if reply_to is not None:
            asked = {"reply_topic": reply_to.topic, "correlation_id": (reply_to.correlation_id or b"").decode()}
            if reply_to.partition is not None:
                asked["reply_partition"] = str(reply_to.partition)
            value = json_command(value, asked)
        topic, partition = self.place or (None, None)
        headers = [(CONTENT_TYPE, JSON_COMMAND), *self.more_headers(value)]
        return CommandToSend(self.tenant, self.id, self.key, value, headers, topic, partition)


def requested(
    body: bytes,
    given: Mapping[str, str],
    more_headers: MakeHeaders,
    defaults: Mapping[str, str] | None = None,
    ruled: Tenant | None = None,
    *,
    needs_target: bool = True,
) -> Requested:
    """Return the command of a body, together with what the path or the query sets.

    `defaults` are for fields that neither of them sets. A schedule without a target gets the default target of `ruled`,
    the tenant's rules; without `needs_target`, it may remain without one. Raises InvalidCommand naming the invalid
    member: a schedule needs an id or a key.
    """
    is_starred = given.get("id", "").endswith(ANY)
    if is_starred and given.get("command") not in OF_STARRED:
        raise no_selection()
    value = json_command(body, given, defaults)
    members = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    for name in _ELSEWHERE:
        if name in members and bytes(members[name]) != b"null":
            raise InvalidCommand(name, "is for Kafka producers only. Over HTTP the response is the result")
    command = _decoded(JSON_OF_OTHERS if is_starred else JSON, value, ruled, needs_target=needs_target)
    if is_starred and not _is_absent(members, "labels"):
        raise InvalidCommand("labels", "is for several schedules, and this path is for one")
    if isinstance(command, ScheduleCommand) and command.key is None and _is_absent(members, "id"):
        raise InvalidCommand("id", "is required: there is no key to use as the id")
    key = command.id.encode() if command.key is None else command.key
    target_topic = command.target.topic if isinstance(command, ScheduleCommand) else None
    return Requested(
        tenant=command.tenant,
        id=command.id,
        key=key,
        value=value,
        has_key=command.key is not None,
        expected_version=command.expected_version,
        target_topic=target_topic,
        more_headers=more_headers,
    )


def no_selection() -> InvalidCommand:
    """Return the error for an id that ends in `*` in a command for one schedule."""
    return InvalidCommand("id", f"must not end in {ANY}: this path is for one schedule")


def _is_absent(members: Mapping[str, msgspec.Raw], name: str) -> bool:
    return name not in members or is_null(members[name])


def _decoded(form: JsonDialect, value: bytes, ruled: Tenant | None, *, needs_target: bool) -> Command:
    try:
        return form.decode(UnsentRecord(None, value))
    except TargetMissing as error:
        command = with_default_target(error.command, ruled)
        if command is not None:
            return command
        if needs_target:
            raise
        return error.command
