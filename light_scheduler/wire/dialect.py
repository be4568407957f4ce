"""Dialects: the forms that commands come in. A commands topic has one; the engine sees none of them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from light_scheduler.errors import ConfigurationError
from light_scheduler.model import Command, ReplyTo

from .record import CommandRecord


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What can be told of a command that cannot be understood: enough to answer it and to file it."""

    command: str
    tenant: str
    id: str | None
    reply_to: ReplyTo | None


class Dialect(Protocol):
    """One form of commands."""

    @property
    def name(self) -> str:
        """The name that the setting `commands_topics` uses."""
        ...

    def decode(self, record: CommandRecord) -> Command:
        """Read a record. Raises InvalidCommand, and nothing else, naming the field as its sender wrote it."""
        ...

    def salvage(self, record: CommandRecord) -> Envelope:
        """Tell what can be told of a record that `decode` refused. Never raises."""
        ...


def dialect_named(name: str) -> Dialect:
    """Return the dialect of a name. Raises ConfigurationError naming `commands_topics` if there is none."""
    from .json_form import JSON
    from .native import NATIVE

    dialects: dict[str, Dialect] = {"native": NATIVE, "json": JSON}
    if name not in dialects:
        raise ConfigurationError("commands_topics", f"there is no dialect {name!r}; there are {', '.join(dialects)}")
    return dialects[name]
